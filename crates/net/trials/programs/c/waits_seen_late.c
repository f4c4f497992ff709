// about: waits are raw system calls at first, and go through libc later
// upgraded: yes
#include "raw_waits.h"

/* How a connection's ends wait at first, and then. */
static const enum way ways[][2] = {
    {RAW_PPOLL, LIBC_POLL}, {RAW_EPOLL, LIBC_POLL}, {LIBC_CTL, LIBC_EPOLL}, {RAW_PPOLL, LIBC_EPOLL},
};

static void trips(int fd, enum role role, int pair)
{
    enum way first = ways[pair][0], then = ways[pair][1];
    watch(fd, first);
    trips_waiting(fd, role, 200, 64, first);
    say("%d: by TCP %d", pair, witness_received(fd) >= 199 * 64);
    if (then == LIBC_EPOLL && first != LIBC_CTL) {
        struct epoll_event event = {.events = EPOLLIN};
        MUST(epoll_ctl(raw_set, EPOLL_CTL_ADD, fd, &event));
    }
    trips_waiting(fd, role, 2000, 64, then);
    prove_waiting(fd, role, role == SERVER ? "server" : "client", then);
    say("%d: done", pair);
    MUST(close(raw_set));
    MUST(close(fd));
}

int main(void)
{
    return run_pairs(trips, sizeof ways / sizeof *ways);
}
