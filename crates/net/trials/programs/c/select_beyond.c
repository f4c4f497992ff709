// about: select with a number above FD_SETSIZE in a larger bitmap, and poll and epoll on it
// upgraded: yes
// variants: plain
#include "trial.h"

#define NUMBER 2100

static void server(int fd)
{
    for (int i = 0; i < 3; i++) {
        meet();
        send_all(fd, "data", 4);
    }
    round_trips(fd, SERVER, 60, 64);
}

static void client(int fd)
{
    static unsigned long in[(NUMBER + 64) / 64];
    char text[8];
    int high = (int)MUST(fcntl(fd, F_DUPFD, NUMBER));
    MUST(close(fd));
    say("number %d", high);
    for (int way = 0; way < 3; way++) {
        struct pollfd entry = {.fd = high, .events = POLLIN};
        struct epoll_event event = {.events = EPOLLIN};
        int set = (int)MUST(epoll_create1(0));
        MUST(epoll_ctl(set, EPOLL_CTL_ADD, high, &event));
        memset(in, 0, sizeof in);
        in[high / 64] = 1ul << (high % 64);
        struct timeval none = {0}, wait = {.tv_sec = LONG_MS / 1000};
        if (way == 0)
            say("quiet %d", select(high + 1, (fd_set *)in, NULL, NULL, &none));
        in[high / 64] = 1ul << (high % 64);
        meet();
        if (way == 0)
            say("select %d %d", select(high + 1, (fd_set *)in, NULL, NULL, &wait), in[high / 64] == 1ul << (high % 64));
        if (way == 1)
            say("poll %d %#x", poll(&entry, 1, LONG_MS), (unsigned)entry.revents);
        if (way == 2)
            say("epoll %d %#x", epoll_wait(set, &event, 1, LONG_MS), (unsigned)event.events);
        recv_all(high, text, 4);
        MUST(close(set));
    }
    round_trips(high, CLIENT, 60, 64);
}

int main(void)
{
    return run_pair(server, client);
}
