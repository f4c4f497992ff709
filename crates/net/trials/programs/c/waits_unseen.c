// about: bytes move through libc and waits are raw system calls, at one end or at both
// upgraded: no
#include "raw_waits.h"

/* How the two ends wait, connection by connection. */
static const enum way ways[][2] = {
    {RAW_PPOLL, RAW_PPOLL}, {RAW_EPOLL, RAW_EPOLL}, {LIBC_CTL, LIBC_CTL},   {RAW_PPOLL, LIBC_POLL},
    {LIBC_POLL, RAW_EPOLL}, {LIBC_CTL, LIBC_EPOLL}, {LIBC_EPOLL, LIBC_CTL}, {DEEP_POLL, LIBC_POLL},
    {DEEP_POLL, DEEP_POLL},
};

static void trips(int fd, enum role role, int pair)
{
    trips_in_one_way(fd, role, pair, ways[pair][role]);
}

int main(void)
{
    return run_pairs(trips, sizeof ways / sizeof *ways);
}
