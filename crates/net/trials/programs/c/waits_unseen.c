// about: a program that moves bytes through libc and waits by system calls of its own, at one end of a connection or both
// upgraded: no
#include "raw_waits.h"

/* How the two ends wait, connection by connection. */
static const enum way ways[][2] = {
    {RAW_PPOLL, RAW_PPOLL}, {RAW_EPOLL, RAW_EPOLL}, {LIBC_CTL, LIBC_CTL},   {RAW_PPOLL, LIBC_POLL},
    {LIBC_POLL, RAW_EPOLL}, {LIBC_CTL, LIBC_EPOLL}, {LIBC_EPOLL, LIBC_CTL},
};
#define PAIRS (int)(sizeof ways / sizeof *ways)

static void trips(int fd, enum role role, int pair)
{
    enum way way = ways[pair][role];
    watch(fd, way);
    trips_waiting(fd, role, 200, 64, way);
    prove_waiting(fd, role, role == SERVER ? "server" : "client", way);
    say("%d: done", pair);
    MUST(close(raw_set));
    MUST(close(fd));
}

static void server(int fd)
{
    (void)fd;
    int listener = open_door();
    for (int pair = 0; pair < PAIRS; pair++)
        trips(accept_at(listener), SERVER, pair);
}

static void client(int fd)
{
    (void)fd;
    int port = find_door();
    for (int pair = 0; pair < PAIRS; pair++)
        trips(connect_at("127.0.0.1", port), CLIENT, pair);
}

int main(void)
{
    return run_pair_at("127.0.0.1", "127.0.0.1", true, server, client);
}
