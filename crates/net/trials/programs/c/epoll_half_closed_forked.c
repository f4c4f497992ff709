// about: a forked server waits by epoll for room to answer a half-closed client
// upgraded: yes
#include "trial.h"

#define ANSWER (8 << 20)

/* Reads to the end, then asks for room alone. */
static void hear(int set, int fd)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP};
    char text[64];
    ssize_t got = 1;
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    while (got != 0) {
        MUST(epoll_wait(set, &event, 1, -1));
        got = MUST(recv(fd, text, sizeof text, 0));
    }
    event.events = EPOLLOUT;
    MUST(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
}

static void server(int fd)
{
    static unsigned char block[65536];
    struct epoll_event event;
    int set = (int)MUST(epoll_create1(0)), waits = 0;
    pid_t child = (pid_t)MUST(fork()); /* has the connection and the set, too */
    if (child == 0)
        for (;;)
            pause();
    MUST(fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK));
    hear(set, fd);
    for (size_t at = 0; at < ANSWER;) {
        size_t wanted = ANSWER - at < sizeof block ? ANSWER - at : sizeof block;
        for (size_t i = 0; i < wanted; i++)
            block[i] = pattern(3, at + i);
        ssize_t sent = send(fd, block, wanted, 0);
        if (sent > 0) {
            at += (size_t)sent;
            continue;
        }
        if (waits++ == 0)
            meet(); /* nothing more fits: the client may read */
        if (MUST(epoll_wait(set, &event, 1, 5000)) == 0)
            give_up("no room after %zu bytes", at);
    }
    say("answered");
    MUST(kill(child, SIGKILL));
    MUST(waitpid(child, NULL, 0));
}

static void client(int fd)
{
    static unsigned char block[65536];
    size_t wrong = 0;
    send_all(fd, "question", 8);
    MUST(shutdown(fd, SHUT_WR));
    meet();
    for (size_t at = 0; at < ANSWER;) {
        size_t wanted = ANSWER - at < sizeof block ? ANSWER - at : sizeof block;
        recv_all(fd, block, wanted);
        for (size_t i = 0; i < wanted; i++)
            wrong += block[i] != pattern(3, at + i);
        at += wanted;
    }
    say("wrong %zu", wrong);
}

int main(void)
{
    return run_pair(server, client);
}
