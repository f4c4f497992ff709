// about: a set within a set, and a set in poll and in select
// upgraded: yes
#include "trial.h"

static int inner, outer;

static void seen(const char *what, int timeout)
{
    struct epoll_event events[4];
    struct pollfd entry = {.fd = inner, .events = POLLIN};
    fd_set in;
    FD_ZERO(&in);
    FD_SET(inner, &in);
    struct timeval wait = {.tv_sec = timeout / 1000};
    int rc = epoll_wait(outer, events, 4, timeout);
    say("%s: outer %d %#x", what, rc, rc > 0 ? events[0].events : 0);
    rc = poll(&entry, 1, timeout);
    say("  poll %d %#x", rc, (unsigned)entry.revents);
    say("  select %d", select(inner + 1, &in, NULL, NULL, &wait));
}

static void server(int fd)
{
    char text[8];
    meet();
    send_all(fd, "abcd", 4);
    meet();
    for (int i = 0; i < 3; i++) {
        recv_all(fd, text, 1);
        send_all(fd, "wake", 4);
    }
    meet();
}

static void client(int fd)
{
    char text[64];
    struct epoll_event event;
    inner = (int)MUST(epoll_create1(0));
    outer = (int)MUST(epoll_create1(0));
    struct epoll_event want = {.events = EPOLLIN};
    MUST(epoll_ctl(inner, EPOLL_CTL_ADD, fd, &want));
    MUST(epoll_ctl(outer, EPOLL_CTL_ADD, inner, &want));
    SAY(epoll_ctl(inner, EPOLL_CTL_ADD, outer, &want)); /* a loop */
    seen("quiet", 0);
    meet();
    await_bytes(fd, 4);
    seen("data", LONG_MS);
    seen("still", LONG_MS);
    recv_all(fd, text, 4);
    seen("drained", 0);
    meet();
    send_all(fd, "1", 1);
    say("woken in the outer set: %d", epoll_wait(outer, &event, 1, LONG_MS));
    recv_all(fd, text, 4);
    send_all(fd, "2", 1);
    struct pollfd entry = {.fd = inner, .events = POLLIN};
    say("woken in poll: %d", poll(&entry, 1, LONG_MS));
    recv_all(fd, text, 4);
    send_all(fd, "3", 1);
    fd_set in;
    FD_ZERO(&in);
    FD_SET(outer, &in);
    say("woken in select on the outer set: %d", select(outer + 1, &in, NULL, NULL, NULL));
    recv_all(fd, text, 4);
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
