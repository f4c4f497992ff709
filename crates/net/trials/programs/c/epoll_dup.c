// about: a duplicated epoll descriptor is the same set: ADD through one, wait through the other, close either
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    for (int i = 0; i < 3; i++) {
        meet();
        send_all(fd, "data", 4);
        meet();
    }
}

static void client(int fd)
{
    char text[8];
    int set = (int)MUST(epoll_create1(0)), twin = (int)MUST(dup(set)), third = (int)MUST(dup2(set, 90));
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = 11};
    MUST(epoll_ctl(twin, EPOLL_CTL_ADD, fd, &event));
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    meet();
    say("twin %d", epoll_wait(twin, &event, 1, LONG_MS));
    say("set %d", epoll_wait(set, &event, 1, LONG_MS));
    recv_all(fd, text, 4);
    meet();
    MUST(close(set));
    meet();
    say("third %d, data %u", epoll_wait(third, &event, 1, LONG_MS) == 1, event.data.u32);
    recv_all(fd, text, 4);
    meet();
    SAY(epoll_ctl(third, EPOLL_CTL_DEL, fd, NULL));
    meet();
    await_bytes(fd, 4);
    say("removed: %d", epoll_wait(twin, &event, 1, 0));
    event.events = EPOLLIN | EPOLLET;
    SAY(epoll_ctl(twin, EPOLL_CTL_ADD, fd, &event));
    MUST(close(third));
    say("added again: %d", epoll_wait(twin, &event, 1, LONG_MS));
    say("once: %d", epoll_wait(twin, &event, 1, 0));
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
