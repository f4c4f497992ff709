// about: one descriptor in several sets, a dup in a set, the original closed while its dup lives
// upgraded: yes
#include "trial.h"

static void seen(const char *what, int set, int timeout)
{
    struct epoll_event events[4];
    int rc = epoll_wait(set, events, 4, timeout);
    say("%s: %d", what, rc);
    int low = 0, sum = 0;
    for (int i = 0; i < rc; i++) {
        sum += (int)events[i].data.u32;
        low |= (int)events[i].events;
    }
    say("  data sum %d events %#x", sum, (unsigned)low);
}

static void server(int fd)
{
    for (int i = 0; i < 3; i++) {
        meet();
        send_all(fd, "abcd", 4);
        meet();
    }
}

static void client(int fd)
{
    char text[64];
    int level = (int)MUST(epoll_create1(0)), edge = (int)MUST(epoll_create1(0)), both = (int)MUST(epoll_create1(0));
    int twin = (int)MUST(dup(fd));
    struct epoll_event want = {.events = EPOLLIN, .data.u32 = 1};
    MUST(epoll_ctl(level, EPOLL_CTL_ADD, fd, &want));
    MUST(epoll_ctl(both, EPOLL_CTL_ADD, fd, &want));
    want.data.u32 = 2;
    SAY(epoll_ctl(both, EPOLL_CTL_ADD, twin, &want)); /* another number: allowed */
    want.events = EPOLLIN | EPOLLET;
    MUST(epoll_ctl(edge, EPOLL_CTL_ADD, fd, &want));
    meet();
    await_bytes(fd, 4);
    seen("level", level, LONG_MS);
    seen("edge", edge, LONG_MS);
    seen("both", both, LONG_MS);
    seen("level again", level, LONG_MS);
    seen("edge again", edge, 0);
    recv_all(twin, text, 4);
    seen("level drained", level, 0);
    seen("both drained", both, 0);
    meet();
    meet();
    await_bytes(fd, 4);
    MUST(epoll_ctl(both, EPOLL_CTL_DEL, fd, NULL));
    seen("the dup remains", both, LONG_MS);
    seen("edge", edge, LONG_MS);
    MUST(close(fd)); /* the description lives on in the dup: still registered */
    seen("level after close of the original", level, LONG_MS);
    recv_all(twin, text, 4);
    meet();
    meet();
    await_bytes(twin, 4);
    seen("level through the twin", level, LONG_MS);
    seen("edge through the twin", edge, LONG_MS);
    SAY(epoll_ctl(level, EPOLL_CTL_DEL, fd, NULL));
    MUST(close(twin));
    seen("level after the last close", level, 0);
    seen("edge after the last close", edge, 0);
    seen("both after the last close", both, 0);
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
