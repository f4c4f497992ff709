// about: EPOLLONESHOT: silent after one report until MOD re-arms it, with data that came in between
// upgraded: yes
#include "trial.h"

static int set;
static void seen(const char *what, int timeout)
{
    struct epoll_event events[4];
    int rc = epoll_wait(set, events, 4, timeout);
    say("%s: %d %#x", what, rc, rc > 0 ? events[0].events : 0);
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
    set = (int)MUST(epoll_create1(0));
    struct epoll_event want = {.events = EPOLLIN | EPOLLONESHOT};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
    meet();
    seen("first", LONG_MS);
    seen("silent", 0);
    meet();
    recv_all(fd, text, 4);
    meet();
    await_bytes(fd, 4);
    seen("silent for new data", SHORT_MS);
    meet();
    MUST(epoll_ctl(set, EPOLL_CTL_MOD, fd, &want));
    seen("re-armed with data there", LONG_MS);
    seen("silent", 0);
    recv_all(fd, text, 4);
    MUST(epoll_ctl(set, EPOLL_CTL_MOD, fd, &want));
    seen("re-armed with nothing there", 0);
    meet();
    seen("third", LONG_MS);
    meet();
    want.events = EPOLLIN | EPOLLET | EPOLLONESHOT;
    MUST(epoll_ctl(set, EPOLL_CTL_MOD, fd, &want));
    seen("edge and one-shot", LONG_MS);
    seen("silent", 0);
    MUST(epoll_ctl(set, EPOLL_CTL_MOD, fd, &want));
    seen("edge re-armed", LONG_MS);
    want.events = EPOLLIN;
    MUST(epoll_ctl(set, EPOLL_CTL_MOD, fd, &want));
    seen("level", LONG_MS);
    seen("level", LONG_MS);
}

int main(void)
{
    return run_pair(server, client);
}
