// about: eight megabytes through writev, sendmsg, readv and recvmsg with parts of ever changing sizes, on ends that do not block
// upgraded: yes
#include "trial.h"

enum { BULK = 8 << 20, ROOM = 200000 };

struct dice {
    uint64_t state;
};

static size_t below(struct dice *dice, size_t limit)
{
    dice->state = dice->state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(dice->state >> 33) % limit;
}

/* Up to 40 parts within `block`, some of them empty; returns how many. */
static int cut(struct dice *dice, struct iovec *parts, unsigned char *block, size_t size)
{
    int count = 0;
    for (size_t at = 0; at < size && count < 40; count++) {
        size_t piece = below(dice, 4) == 0 ? 0 : below(dice, below(dice, 5) == 0 ? 40000 : 300) + 1;
        if (piece > size - at || count == 39)
            piece = size - at;
        parts[count] = (struct iovec){block + at, piece};
        at += piece;
    }
    return count;
}

static unsigned char block[ROOM];

static void server(int fd)
{
    struct dice dice = {1};
    struct iovec parts[40];
    MUST(fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK));
    for (size_t at = 0; at < BULK;) {
        size_t size = below(&dice, ROOM) + 1;
        if (size > BULK - at)
            size = BULK - at;
        for (size_t i = 0; i < size; i++)
            block[i] = pattern(9, at + i);
        int count = cut(&dice, parts, block, size);
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)count};
        ssize_t sent = count % 2 == 0 ? writev(fd, parts, count) : sendmsg(fd, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) {
            await_event(fd, POLLOUT);
            continue;
        }
        at += (size_t)MUST(sent);
    }
    MUST(shutdown(fd, SHUT_WR));
    await_event(fd, POLLRDHUP);
}

static void client(int fd)
{
    struct dice dice = {2};
    struct iovec parts[40];
    uint64_t at = 0, wrong = 0;
    MUST(fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK));
    for (;;) {
        int count = cut(&dice, parts, block, below(&dice, ROOM) + 1);
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)count};
        size_t room = 0;
        for (int i = 0; i < count; i++)
            room += parts[i].iov_len;
        if (room == 0)
            continue;
        ssize_t got = count % 2 == 0 ? readv(fd, parts, count) : recvmsg(fd, &message, 0);
        if (got < 0 && errno == EAGAIN) {
            await_event(fd, POLLIN);
            continue;
        }
        if (MUST(got) == 0)
            break;
        for (ssize_t i = 0; i < got; i++)
            wrong += block[i] != pattern(9, at + (uint64_t)i);
        at += (uint64_t)got;
    }
    say("%llu bytes, %llu wrong", (unsigned long long)at, (unsigned long long)wrong);
}

int main(void)
{
    return run_pair(server, client);
}
