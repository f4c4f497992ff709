// about: threads cancelled in accept, accept4, pselect, epoll_pwait, recvfrom, recvmmsg, writev and sendmsg; what they had sent arrives
// upgraded: yes
#include "trial.h"

enum { WAYS = 6 };
static int line, listener, way, set;

static void waiting(void)
{
    char text[8];
    struct iovec part = {text, 8};
    struct mmsghdr many = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
    struct epoll_event event;
    fd_set in;
    FD_ZERO(&in);
    FD_SET(line, &in);
    switch (way) {
    case 0: accept(listener, NULL, NULL); break;
    case 1: accept4(listener, NULL, NULL, SOCK_CLOEXEC); break;
    case 2: pselect(line + 1, &in, NULL, NULL, NULL, NULL); break;
    case 3: epoll_pwait(set, &event, 1, -1, NULL); break;
    case 4: recvfrom(line, text, 8, 0, NULL, NULL); break;
    default: recvmmsg(line, &many, 1, 0, NULL);
    }
    say("not reached");
}

static uint64_t sent; /* of the pattern that fills the connection */

static void fill(void)
{
    static unsigned char block[50000];
    MUST(fcntl(line, F_SETFL, O_RDWR | O_NONBLOCK));
    while (poll(&(struct pollfd){.fd = line, .events = POLLOUT}, 1, SHORT_MS) > 0) {
        for (size_t i = 0; i < sizeof block; i++)
            block[i] = pattern(4, sent + i);
        sent += (uint64_t)MUST(write(line, block, sizeof block));
    }
    MUST(fcntl(line, F_SETFL, O_RDWR));
}

static void writing(void)
{
    static char block[16 << 20];
    struct iovec part = {block, sizeof block};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (way == 0)
        writev(line, &part, 1);
    else
        sendmsg(line, &message, MSG_NOSIGNAL);
    say("not reached");
}

static void server(int fd)
{
    static unsigned char block[65536];
    uint64_t expected, wrong = 0;
    if (read(trial_meet[0], &expected, sizeof expected) != sizeof expected)
        give_up("no count");
    for (uint64_t at = 0; at < expected;) {
        size_t want = expected - at < sizeof block ? (size_t)(expected - at) : sizeof block;
        recv_all(fd, block, want);
        for (size_t i = 0; i < want; i++)
            wrong += block[i] != pattern(4, at + i);
        at += want;
    }
    say("wrong %llu", (unsigned long long)wrong);
    meet();
}

static void client(int fd)
{
    struct sleeper sleeper;
    line = fd;
    listener = listen_at("127.0.0.1");
    set = (int)MUST(epoll_create1(0));
    struct epoll_event want = {.events = EPOLLIN};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
    for (way = 0; way < WAYS; way++) {
        start_sleeper(&sleeper, waiting);
        MUST(-pthread_cancel(sleeper.thread));
        say("way %d cancelled %d", way, join_sleeper(&sleeper));
    }
    int self = connect_at("127.0.0.1", port_of(listener));
    MUST(close(accept_at(listener))); /* nothing was lost of the listener */
    MUST(close(self));
    fill();
    for (way = 0; way < 2; way++) {
        start_sleeper(&sleeper, writing);
        MUST(-pthread_cancel(sleeper.thread));
        say("sender %d cancelled %d", way, join_sleeper(&sleeper));
    }
    MUST(write(trial_meet[1], &sent, sizeof sent));
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
