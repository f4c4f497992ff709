// about: both sides send 60 KB in small pieces before either reads, or has read all: what TCP would buffer blocks nobody
// upgraded: yes
#include "trial.h"

enum { PIECES = 1000, PIECE = 60 };

static void send_pieces(int fd, uint64_t stream, uint64_t from, uint64_t to)
{
    unsigned char piece[PIECE];
    for (uint64_t i = from; i < to; i++) {
        for (uint64_t at = 0; at < PIECE; at++)
            piece[at] = pattern(stream, i * PIECE + at);
        await_event(fd, POLLOUT);
        if (MUST(send(fd, piece, PIECE, MSG_NOSIGNAL)) != PIECE)
            give_up("a blocking send in part");
    }
}

static void take_pieces(int fd, uint64_t stream, uint64_t from, uint64_t to)
{
    unsigned char piece[PIECE];
    int wrong = 0;
    for (uint64_t i = from; i < to; i++) {
        recv_all(fd, piece, PIECE);
        for (uint64_t at = 0; at < PIECE; at++)
            wrong += piece[at] != pattern(stream, i * PIECE + at);
    }
    say("wrong %d", wrong);
}

/* `ahead` pieces are sent at first, and half of them read, before the others are sent. */
static void both(int fd, uint64_t own, uint64_t other, uint64_t ahead)
{
    send_pieces(fd, own, 0, ahead);
    meet();
    take_pieces(fd, other, 0, ahead / 2);
    meet();
    send_pieces(fd, own, ahead, PIECES);
    meet();
    take_pieces(fd, other, ahead / 2, PIECES);
    meet();
}

static void server(int fd)
{
    both(fd, 1, 2, 100);
    both(fd, 3, 4, 0);
}

static void client(int fd)
{
    both(fd, 2, 1, 100);
    both(fd, 4, 3, 0);
}

int main(void)
{
    return run_pair(server, client);
}
