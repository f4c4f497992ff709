// about: messages of every size around powers of two up to a megabyte, there and back, each sent by one call and taken by one or by many
// upgraded: yes
#include "trial.h"

enum { LARGEST = 1 << 20 };
static unsigned char out[LARGEST + 2], in[LARGEST + 2];

static void take(int fd, size_t size, int how)
{
    if (how == 0)
        recv_all(fd, in, size);
    else if (how == 1)
        MUST(recv(fd, in, size, MSG_WAITALL));
    else
        for (size_t at = 0; at < size;) {
            size_t piece = size / 3 + 1 < size - at ? size / 3 + 1 : size - at;
            recv_all(fd, in + at, piece);
            at += piece;
        }
}

static void exchange(int fd, enum role role)
{
    int wrong = 0, count = 0;
    for (int power = 0; power <= 20; power++)
        for (int edge = -1; edge <= 1; edge++, count++) {
            size_t size = (size_t)((1 << power) + edge);
            if (size == 0)
                continue;
            for (size_t i = 0; i < size; i++)
                out[i] = pattern((uint64_t)count, i);
            if (role == CLIENT)
                send_all(fd, out, size);
            memset(in, 0, size);
            take(fd, size, count % 3);
            wrong += memcmp(in, out, size) != 0;
            if (role == SERVER)
                send_all(fd, out, size);
        }
    say("%d sizes, wrong %d", count, wrong);
}

static void server(int fd)
{
    exchange(fd, SERVER);
}

static void client(int fd)
{
    exchange(fd, CLIENT);
}

int main(void)
{
    return run_pair(server, client);
}
