// about: both sides send 60 KB in small pieces before either reads: what TCP would buffer does not block them
// upgraded: yes
#include "trial.h"

enum { PIECES = 1000, PIECE = 60 };

static void both(int fd, uint64_t own, uint64_t other)
{
    unsigned char piece[PIECE];
    int wrong = 0;
    for (uint64_t i = 0; i < PIECES; i++) {
        for (uint64_t at = 0; at < PIECE; at++)
            piece[at] = pattern(own, i * PIECE + at);
        await_event(fd, POLLOUT);
        if (MUST(send(fd, piece, PIECE, MSG_NOSIGNAL)) != PIECE)
            give_up("a blocking send in part");
    }
    meet();
    for (uint64_t i = 0; i < PIECES; i++) {
        recv_all(fd, piece, PIECE);
        for (uint64_t at = 0; at < PIECE; at++)
            wrong += piece[at] != pattern(other, i * PIECE + at);
    }
    say("wrong %d", wrong);
    meet();
}

static void server(int fd)
{
    both(fd, 1, 2);
    both(fd, 3, 4);
}

static void client(int fd)
{
    both(fd, 2, 1);
    both(fd, 4, 3);
}

int main(void)
{
    return run_pair(server, client);
}
