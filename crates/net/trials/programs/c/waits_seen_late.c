// about: a program that first waits by system calls of its own, and later through libc
// upgraded: yes
#include "raw_waits.h"

/* How a connection's ends wait at first, and then. */
static const enum way ways[][2] = {
    {RAW_PPOLL, LIBC_POLL}, {RAW_EPOLL, LIBC_POLL}, {LIBC_CTL, LIBC_EPOLL}, {RAW_PPOLL, LIBC_EPOLL},
};
#define PAIRS (int)(sizeof ways / sizeof *ways)

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
