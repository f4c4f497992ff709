// about: edge-triggered epoll: one report per arrival, a MOD or an ADD reports again what is there
// upgraded: yes
// spared: going back to TCP registers anew with the kernel, which reports once more what is there, as after EPOLL_CTL_MOD
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
    for (int i = 0; i < 4; i++) {
        meet();
        send_all(fd, "abcd", 4);
        meet();
    }
    meet();
    MUST(shutdown(fd, SHUT_WR));
    meet();
}

static void client(int fd)
{
    char text[64];
    set = (int)MUST(epoll_create1(0));
    struct epoll_event want = {.events = EPOLLIN | EPOLLET | EPOLLRDHUP};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
    seen("quiet", 0);
    meet();
    seen("first arrival", LONG_MS);
    meet();
    seen("not again", 0);
    recv_all(fd, text, 2);
    seen("not after a partial read", 0);
    meet();
    seen("second arrival", LONG_MS);
    meet();
    await_bytes(fd, 6);
    seen("not again", 0);
    MUST(epoll_ctl(set, EPOLL_CTL_MOD, fd, &want));
    seen("after MOD", LONG_MS);
    seen("once", 0);
    MUST(epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL));
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
    seen("after DEL and ADD", LONG_MS);
    seen("once", 0);
    recv_all(fd, text, 6);
    SAY(recv(fd, text, 1, MSG_DONTWAIT));
    seen("after EAGAIN", 0);
    meet();
    await_bytes(fd, 4); /* arrived, and drained before the wait */
    recv_all(fd, text, 4);
    meet();
    int late = epoll_wait(set, &want, 1, 0); /* Linux drops an edge whose cause is gone */
    say("drained before waiting: %d", late);
    want.events = EPOLLIN | EPOLLET | EPOLLRDHUP;
    meet();
    seen("third arrival", LONG_MS);
    meet();
    meet();
    meet();
    await_event(fd, POLLRDHUP);
    seen("end", LONG_MS);
    seen("end once", 0);
}

int main(void)
{
    return run_pair(server, client);
}
