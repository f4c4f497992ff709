// about: descriptors block, receives say MSG_DONTWAIT, and waits are raw system calls
// upgraded: no
#include "raw_waits.h"

/* How the two ends wait, connection by connection. */
static const enum way ways[][2] = {
    {RAW_PPOLL, RAW_PPOLL}, {RAW_EPOLL, RAW_EPOLL}, {LIBC_CTL, LIBC_CTL},   {RAW_PPOLL, LIBC_POLL},
    {LIBC_POLL, RAW_EPOLL}, {LIBC_CTL, LIBC_EPOLL}, {RAW_PPOLL, LIBC_RECV}, {LIBC_RECV, DEEP_POLL},
    {DEEP_POLL, DEEP_POLL},
};

static void trips(int fd, enum role role, int pair)
{
    trips_in_one_way(fd, role, pair, ways[pair][role]);
}

int main(void)
{
    raw_hurried = true;
    return run_pairs(trips, sizeof ways / sizeof *ways);
}
