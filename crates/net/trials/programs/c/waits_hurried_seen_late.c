// about: descriptors block and receives say MSG_DONTWAIT; waits go through libc later
// upgraded: yes
#include "raw_waits.h"

/* How a connection's ends wait at first, and then. */
static const enum way ways[][2] = {
    {RAW_PPOLL, LIBC_POLL}, {LIBC_CTL, LIBC_EPOLL}, {RAW_PPOLL, LIBC_RECV},
};

static void trips(int fd, enum role role, int pair)
{
    trips_seen_late(fd, role, pair, ways[pair][0], ways[pair][1]);
}

int main(void)
{
    raw_hurried = true;
    return run_pairs(trips, sizeof ways / sizeof *ways);
}
