// about: the thread's signal mask is the same before and after every call, whichever way bytes go
// upgraded: yes
#include "trial.h"
#include <sys/time.h>

#define TRIPS 1200

static sigset_t own_mask;

static void block_some(void)
{
    sigemptyset(&own_mask);
    sigaddset(&own_mask, SIGUSR1);
    sigaddset(&own_mask, SIGALRM);
    sigaddset(&own_mask, SIGRTMAX);
    MUST(sigprocmask(SIG_SETMASK, &own_mask, NULL));
}

/* Whether the thread still blocks what block_some() says, and nothing else. */
static void check_mask(const char *call)
{
    sigset_t now;
    MUST(sigprocmask(SIG_BLOCK, NULL, &now));
    for (int number = 1; number <= SIGRTMAX; number++)
        if (sigismember(&now, number) != sigismember(&own_mask, number))
            say("%s: signal %d is blocked: %d", call, number, sigismember(&now, number));
}

#define CALL(call)                    \
    ({                                \
        long done_ = (long)(call);    \
        check_mask(#call);            \
        done_;                        \
    })

static void send_one(int fd, int trip, char *byte)
{
    struct iovec part = {byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    long sent = -1;
    switch (trip % 5) {
    case 0: sent = CALL(send(fd, byte, 1, 0)); break;
    case 1: sent = CALL(write(fd, byte, 1)); break;
    case 2: sent = CALL(writev(fd, &part, 1)); break;
    case 3: sent = CALL(sendmsg(fd, &message, MSG_NOSIGNAL)); break;
    default: sent = CALL(send(fd, byte, 1, MSG_DONTWAIT)); break;
    }
    if (MUST(sent) != 1)
        give_up("send");
}

static int set;

static void wait_for_one(int fd, int trip)
{
    fd_set readable;
    sigset_t all;
    struct epoll_event event;
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    struct timespec wide = {.tv_sec = LONG_MS / 1000};
    FD_ZERO(&readable);
    FD_SET(fd, &readable);
    sigfillset(&all);
    switch (trip % 7) {
    case 0: CALL(poll(&entry, 1, LONG_MS)); break;
    case 1: CALL(ppoll(&entry, 1, &wide, &all)); break;
    case 2: CALL(select(fd + 1, &readable, NULL, NULL, NULL)); break;
    case 3: CALL(pselect(fd + 1, &readable, NULL, NULL, &wide, &all)); break;
    case 4: CALL(epoll_wait(set, &event, 1, LONG_MS)); break;
    case 5: CALL(epoll_pwait(set, &event, 1, LONG_MS, &all)); break;
    default: break; /* in the receive */
    }
}

static void recv_one(int fd, int trip, char *byte)
{
    struct iovec part = {byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    long got = -1;
    wait_for_one(fd, trip);
    switch (trip % 5) {
    case 0: got = CALL(recv(fd, byte, 1, 0)); break;
    case 1: got = CALL(read(fd, byte, 1)); break;
    case 2: got = CALL(readv(fd, &part, 1)); break;
    case 3: got = CALL(recvmsg(fd, &message, 0)); break;
    default:
        CALL(recv(fd, byte, 1, MSG_PEEK));
        got = CALL(recv(fd, byte, 1, MSG_WAITALL));
        break;
    }
    if (MUST(got) != 1)
        give_up("recv");
}

static void talk(int fd, enum role role)
{
    struct epoll_event want = {.events = EPOLLIN};
    char byte = 'm';
    int pending;
    set = (int)MUST(epoll_create1(0));
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
    block_some();
    for (int trip = 0; trip < TRIPS; trip++) {
        if (role == CLIENT)
            send_one(fd, trip, &byte);
        recv_one(fd, trip, &byte);
        if (role == SERVER)
            send_one(fd, trip, &byte);
        CALL(recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT));
        CALL(ioctl(fd, FIONREAD, &pending));
    }
    say("%d trips", TRIPS);
}

/* The calls that end a channel, or the connection. */
static void end(int fd)
{
    int status, on = 1, copy = (int)CALL(dup(fd));
    pid_t child = (pid_t)CALL(fork());
    if (child == 0) {
        check_mask("fork, in the child");
        CALL(close(fd));
        _exit(0);
    }
    MUST(waitpid(child, &status, 0));
    CALL(setsockopt(fd, SOL_SOCKET, SO_TIMESTAMP, &on, sizeof on));
    CALL(fcntl(fd, F_SETFL, O_RDWR | O_ASYNC));
    CALL(close(copy));
    CALL(shutdown(fd, SHUT_WR));
    CALL(recv(fd, &status, 1, 0));
    CALL(close(fd));
    CALL(close(set));
}

static void server(int fd)
{
    talk(fd, SERVER);
    prove(fd, SERVER);
    end(fd);
}

static void client(int fd)
{
    talk(fd, CLIENT);
    prove(fd, CLIENT);
    end(fd);
}

int main(void)
{
    return run_pair(server, client);
}
