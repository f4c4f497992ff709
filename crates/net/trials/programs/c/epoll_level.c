// about: level-triggered epoll: reported until drained, events masked, data kept, errors of epoll_ctl
// upgraded: yes
// flags: -Wno-stringop-overflow
#include "trial.h"

static int set;
static void seen(const char *what, int timeout)
{
    struct epoll_event events[4];
    int rc = epoll_wait(set, events, 4, timeout);
    say("%s: %d", what, rc);
    for (int i = 0; i < rc; i++)
        say("  %#x %#llx", events[i].events, (unsigned long long)events[i].data.u64);
}

static void server(int fd)
{
    meet();
    send_all(fd, "abcdef", 6);
    meet();
    meet();
    send_all(fd, "more", 4);
    meet();
}

static void client(int fd)
{
    char text[16];
    set = (int)MUST(epoll_create1(EPOLL_CLOEXEC));
    struct epoll_event want = {.events = EPOLLIN, .data.u64 = 0x1122334455667788};
    SAY(epoll_ctl(set, EPOLL_CTL_MOD, fd, &want));
    SAY(epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL));
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
    seen("nothing yet", 0);
    seen("nothing for a while", SHORT_MS);
    meet();
    seen("data", LONG_MS);
    await_bytes(fd, 6);
    seen("still", LONG_MS);
    recv_all(fd, text, 3);
    seen("half of it left", LONG_MS);
    recv_all(fd, text, 3);
    seen("drained", 0);
    want.events = EPOLLOUT;
    want.data.u64 = 2;
    SAY(epoll_ctl(set, EPOLL_CTL_MOD, fd, &want));
    seen("writable", LONG_MS);
    seen("writable", LONG_MS);
    want.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP;
    SAY(epoll_ctl(set, EPOLL_CTL_MOD, fd, &want));
    seen("writable only", LONG_MS);
    meet();
    meet();
    await_bytes(fd, 4);
    seen("both", LONG_MS);
    meet();
    want.events = 0;
    SAY(epoll_ctl(set, EPOLL_CTL_MOD, fd, &want));
    seen("masked", 0);
    SAY(epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL));
    seen("removed", 0);
    want.events = EPOLLIN;
    want.data.u64 = 3;
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
    seen("added with data waiting", LONG_MS);
    MUST(close(fd));
    seen("closed", 0);
    SAY(epoll_wait(set, NULL, 0, 0));
    struct epoll_event one;
    SAY(epoll_wait(set, &one, -1, 0));
    SAY(epoll_wait(trial_meet[0], &one, 1, 0));
    SAY(epoll_wait(-1, &one, 1, 0));
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, set, &one));
    SAY(epoll_create(0));
}

int main(void)
{
    return run_pair(server, client);
}
