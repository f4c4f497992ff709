// about: the program waits in its receives at first, and by raw system calls later
// upgraded: no
#include "raw_waits.h"

/* How both ends of a connection wait later, and whether their descriptors go on to block. */
static const struct {
    enum way way;
    bool hurried;
} cases[] = {{RAW_PPOLL, false}, {LIBC_CTL, false}, {RAW_EPOLL, true}, {DEEP_POLL, true}};

static void trips(int fd, enum role role, int pair)
{
    round_trips(fd, role, 200, 64);
    raw_hurried = cases[pair].hurried;
    trips_in_one_way(fd, role, pair, cases[pair].way);
}

int main(void)
{
    return run_pairs(trips, sizeof cases / sizeof *cases);
}
