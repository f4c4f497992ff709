// about: threads cancelled in recv, poll and epoll_wait before the first byte: it is upgraded
// upgraded: yes
#include "trial.h"

enum { RECV, POLL, EPOLL, WAYS };
static int line, way, set;

static void block(void)
{
    char text[8];
    struct pollfd entry = {.fd = line, .events = POLLIN};
    struct epoll_event event;
    switch (way) {
    case RECV: recv(line, text, 8, 0); break;
    case POLL: poll(&entry, 1, -1); break;
    default: epoll_wait(set, &event, 1, -1); break;
    }
    say("not reached");
}

static void server(int fd)
{
    meet();
    warm_up(fd, SERVER);
}

static void client(int fd)
{
    struct epoll_event want = {.events = EPOLLIN};
    line = fd;
    set = (int)MUST(epoll_create1(0));
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
    for (way = 0; way < WAYS; way++) {
        struct sleeper sleeper;
        start_sleeper(&sleeper, block);
        MUST(-pthread_cancel(sleeper.thread));
        say("way %d cancelled %d", way, join_sleeper(&sleeper));
    }
    meet();
    warm_up(fd, CLIENT);
}

int main(void)
{
    return run_pair_at("127.0.0.1", "127.0.0.1", true, server, client);
}
