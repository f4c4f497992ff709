// about: both ends send 300 KB to 2.5 MB, in pieces or at once, and read only after that
// upgraded: yes
// spared: both ends wait before they read, and TCP whose buffers have not grown has less room than the ring that ends
#include "trial.h"

static unsigned char sent[2500000], got[2500000];

static void exchange(int fd, enum role role, size_t bytes, size_t piece)
{
    for (size_t i = 0; i < bytes; i++)
        sent[i] = pattern(role, i);
    for (size_t at = 0; at < bytes; at += piece)
        send_all(fd, sent + at, bytes - at < piece ? bytes - at : piece);
    meet(); /* the other side has sent all of its own, too */
    recv_all(fd, got, bytes);
    size_t wrong = 0;
    for (size_t i = 0; i < bytes; i++)
        wrong += got[i] != pattern(!role, i);
    say("%zu bytes in pieces of %zu: %zu wrong", bytes, piece, wrong);
    round_trips(fd, role, 20, 64);
}

static void both(int fd, enum role role)
{
    static const size_t sizes[] = {300000, 1000000, 2500000};
    for (int i = 0; i < 3; i++) {
        exchange(fd, role, sizes[i], 1000);
        exchange(fd, role, sizes[i], sizes[i]);
    }
    /* From somewhere in the middle of a ring. */
    exchange(fd, role, 100001, 333);
    exchange(fd, role, 2499999, 65536);
    prove(fd, role);
}

static void server(int fd)
{
    both(fd, SERVER);
}

static void client(int fd)
{
    both(fd, CLIENT);
}

int main(void)
{
    return run_pair(server, client);
}
