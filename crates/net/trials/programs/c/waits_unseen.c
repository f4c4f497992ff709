// about: bytes move through libc and waits are raw system calls, at one end or at both
// upgraded: no
#include "raw_waits.h"

/* How the two ends wait, connection by connection. */
static const enum way ways[][2] = {
    {RAW_PPOLL, RAW_PPOLL}, {RAW_EPOLL, RAW_EPOLL}, {LIBC_CTL, LIBC_CTL},   {RAW_PPOLL, LIBC_POLL},
    {LIBC_POLL, RAW_EPOLL}, {LIBC_CTL, LIBC_EPOLL}, {LIBC_EPOLL, LIBC_CTL},
};

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

int main(void)
{
    return run_pairs(trips, sizeof ways / sizeof *ways);
}
