// about: EINTR in every call that can block: readv, recvmsg, recvmmsg, preadv2, splice, ppoll, pselect, epoll_pwait, writev, sendmsg, accept
// upgraded: yes
#include "trial.h"
#include <sys/time.h>

/* The timer repeats, so a signal that comes before the call blocks is not the last one. */
static void arm(int on)
{
    struct itimerval often = {.it_value = {.tv_usec = 15000 * on}, .it_interval = {.tv_usec = 15000 * on}};
    MUST(setitimer(ITIMER_REAL, &often, NULL));
}

#define INTERRUPTED(call)                 \
    do {                                  \
        long rc_;                         \
        arm(1);                           \
        while ((rc_ = (call)) > 0)        \
            ; /* a send that took a part */ \
        int saved_ = errno;               \
        arm(0);                           \
        errno = saved_;                   \
        say_rc(#call, rc_);               \
    } while (0)

static void server(int fd)
{
    char byte;
    say("some of it %d", recv(fd, &byte, 1, MSG_PEEK) > 0);
    meet();
}

static void client(int fd)
{
    static char block[1 << 20];
    struct iovec part = {block, 8}, large = {block, sizeof block};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1}, heavy = {.msg_iov = &large, .msg_iovlen = 1};
    struct mmsghdr many = {.msg_hdr = message};
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    struct epoll_event event = {.events = EPOLLIN};
    int tube[2], set = (int)MUST(epoll_create1(0)), listener = listen_at("127.0.0.1");
    sigset_t none;
    fd_set in;
    sigemptyset(&none);
    MUST(pipe(tube));
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    count_signals(SIGALRM, 0);
    INTERRUPTED(readv(fd, &part, 1));
    INTERRUPTED(recvfrom(fd, block, 8, 0, NULL, NULL));
    INTERRUPTED(recvmsg(fd, &message, 0));
    INTERRUPTED(recvmsg(fd, &message, MSG_PEEK));
    INTERRUPTED(recvmmsg(fd, &many, 1, 0, NULL));
    INTERRUPTED(preadv2(fd, &part, 1, -1, 0));
    INTERRUPTED(splice(fd, NULL, tube[1], NULL, 8, 0));
    INTERRUPTED(ppoll(&entry, 1, NULL, &none));
    FD_ZERO(&in);
    FD_SET(fd, &in);
    INTERRUPTED(pselect(fd + 1, &in, NULL, NULL, NULL, &none));
    say("the set is as it was: %d", FD_ISSET(fd, &in));
    INTERRUPTED(epoll_pwait(set, &event, 1, -1, &none));
    INTERRUPTED(accept(listener, NULL, NULL));
    INTERRUPTED(write(fd, block, sizeof block));
    INTERRUPTED(writev(fd, &large, 1));
    INTERRUPTED(sendmsg(fd, &heavy, MSG_NOSIGNAL));
    entry.events = POLLOUT;
    arm(1);
    int room = poll(&entry, 1, -1);
    arm(0);
    say("room, or EINTR: %d", room == 1 || errno == EINTR);
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
