// about: edge-triggered EPOLLOUT after a send that took a part or nothing: one report once there is room again
// upgraded: yes
#include "trial.h"

/* Enough for every ring and every TCP buffer to be full several times. */
#define TOTAL (24u << 20)

static unsigned wrong;

/* Takes `TOTAL` bytes of `stream`, in pieces that leave the ring sometimes full, sometimes empty. */
static void take(int fd, uint64_t stream)
{
    static unsigned char block[50000];
    for (uint64_t at = 0; at < TOTAL;) {
        size_t piece = 1 + (at * 7919) % sizeof block;
        ssize_t got = MUST(recv(fd, block, piece < TOTAL - at ? piece : TOTAL - at, 0));
        if (got == 0)
            give_up("the connection ended early");
        for (ssize_t i = 0; i < got; i++)
            wrong += block[i] != pattern(stream, at + (uint64_t)i);
        at += (uint64_t)got;
    }
}

/* As servers with their own event loop do: writes until less than asked was taken, then waits. */
static void give(int fd, int set, uint64_t stream, size_t piece)
{
    static unsigned char block[300000];
    for (uint64_t at = 0; at < TOTAL;) {
        size_t size = piece < TOTAL - at ? piece : (size_t)(TOTAL - at);
        for (size_t i = 0; i < size; i++)
            block[i] = pattern(stream, at + i);
        ssize_t sent = write(fd, block, size);
        if (sent < 0 && errno != EAGAIN)
            give_up("write");
        at += sent > 0 ? (uint64_t)sent : 0;
        if (sent == (ssize_t)size)
            continue;
        struct epoll_event event;
        if (MUST(epoll_wait(set, &event, 1, LONG_MS)) != 1) {
            errno = ETIMEDOUT;
            give_up("no room after %s", sent > 0 ? "a part" : "nothing");
        }
    }
}

static void server(int fd)
{
    take(fd, 1);
    take(fd, 2);
    meet();
    char byte;
    MUST(recv(fd, &byte, 1, MSG_OOB)); /* from here on by TCP */
    take(fd, 3);
    say("wrong %u", wrong);
}

static void client(int fd)
{
    int set = (int)MUST(epoll_create1(0));
    MUST(fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK));
    struct epoll_event want = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
    give(fd, set, 1, 300000);
    give(fd, set, 2, 4096);
    MUST(send(fd, "!", 1, MSG_OOB));
    meet();
    give(fd, set, 3, 100000);
    say("all sent");
}

int main(void)
{
    return run_pair(server, client);
}
