// about: one end sends until it may have a channel, and only then receives, and waits by raw system calls
// upgraded: no
#include "raw_waits.h"

/* How that end waits, and whether its descriptor goes on to block. */
static const struct {
    enum way way;
    bool hurried;
} cases[] = {{RAW_PPOLL, false}, {LIBC_CTL, false}, {RAW_EPOLL, true}, {DEEP_POLL, true}};

static void trips(int fd, enum role role, int pair)
{
    char text[64] = "one way";
    for (int i = 0; i < 300; i++)
        if (role == CLIENT)
            send_all(fd, text, sizeof text);
        else
            recv_all(fd, text, sizeof text);
    raw_hurried = cases[pair].hurried;
    trips_in_one_way(fd, role, pair, role == CLIENT ? cases[pair].way : LIBC_POLL);
}

int main(void)
{
    return run_pairs(trips, sizeof cases / sizeof *cases);
}
