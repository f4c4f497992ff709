// about: a non-blocking read that returns less than asked has taken all there was, also while the connection changes its path
// upgraded: yes
#include "trial.h"

/* Servers with edge-triggered loops (nginx) take a short read for "nothing left" and wait for the next arrival. */
#define TOTAL (16u << 20)
#define PARTS 40

static void give(int fd, uint64_t stream)
{
    static unsigned char block[70000];
    for (uint64_t at = 0; at < TOTAL;) {
        size_t size = 1 + (at * 31) % sizeof block;
        if (size > TOTAL - at)
            size = TOTAL - at;
        for (size_t i = 0; i < size; i++)
            block[i] = pattern(stream, at + i);
        send_all(fd, block, size);
        at += size;
    }
}

static void take(int fd, int set, uint64_t stream)
{
    static unsigned char block[PARTS * 1000];
    struct iovec parts[PARTS];
    unsigned wrong = 0;
    for (int i = 0; i < PARTS; i++)
        parts[i] = (struct iovec){block + i * 1000, 1000};
    for (uint64_t at = 0; at < TOTAL;) {
        int count = 1 + (int)(at % PARTS);
        if ((uint64_t)count * 1000 > TOTAL - at) { /* what follows is another stream */
            count = 1;
            parts[0].iov_len = TOTAL - at < 1000 ? TOTAL - at : 1000;
        }
        ssize_t got = readv(fd, parts, count);
        if (got < 0 && errno != EAGAIN)
            give_up("readv");
        for (ssize_t i = 0; i < got; i++)
            wrong += block[i] != pattern(stream, at + (uint64_t)i);
        at += got > 0 ? (uint64_t)got : 0;
        struct epoll_event event;
        if (got < (ssize_t)parts[0].iov_len + (count - 1) * 1000 && at < TOTAL && MUST(epoll_wait(set, &event, 1, LONG_MS)) != 1) {
            errno = ETIMEDOUT;
            give_up("%d bytes are there, and no event", (int)(TOTAL - at));
        }
    }
    say("wrong %u", wrong);
}

static void server(int fd)
{
    give(fd, 1); /* the switch to the ring is somewhere in here */
    char byte;
    recv_all(fd, &byte, 1);
    warm_up(fd, SERVER);
    give(fd, 2);
    MUST(send(fd, "!", 1, MSG_OOB)); /* and the switch back in here */
    give(fd, 3);
}

static void client(int fd)
{
    int set = (int)MUST(epoll_create1(0));
    struct epoll_event want = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET};
    MUST(fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK));
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
    struct epoll_event first; /* the upgrade needs a wait, and the stream may never run dry */
    MUST(epoll_wait(set, &first, 1, LONG_MS));
    take(fd, set, 1);
    send_all(fd, "n", 1);
    warm_up(fd, CLIENT);
    take(fd, set, 2);
    take(fd, set, 3);
}

int main(void)
{
    return run_pair_at("127.0.0.1", "127.0.0.1", true, server, client);
}
