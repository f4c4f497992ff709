// about: what level and edge sets and poll with an empty mask report of a reset, with unread data before it
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    struct linger none = {.l_onoff = 1};
    send_all(fd, "unread", 6);
    meet();
    meet();
    MUST(setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none));
    MUST(close(fd));
    meet();
}

static void client(int fd)
{
    char text[16];
    int level = (int)MUST(epoll_create1(0)), edge = (int)MUST(epoll_create1(0)), mute = (int)MUST(epoll_create1(0));
    struct epoll_event want = {.events = EPOLLIN | EPOLLRDHUP}, got = {0};
    MUST(epoll_ctl(level, EPOLL_CTL_ADD, fd, &want));
    want.events |= EPOLLET;
    MUST(epoll_ctl(edge, EPOLL_CTL_ADD, fd, &want));
    want.events = 0;
    MUST(epoll_ctl(mute, EPOLL_CTL_ADD, fd, &want));
    meet();
    await_bytes(fd, 6);
    SAY(epoll_wait(edge, &got, 1, LONG_MS));
    say("%#x", got.events);
    SAY(epoll_wait(mute, &got, 1, 0));
    meet();
    SAY(epoll_wait(mute, &got, 1, LONG_MS));
    say("%#x", got.events);
    SAY(epoll_wait(edge, &got, 1, LONG_MS));
    say("%#x", got.events);
    SAY(epoll_wait(level, &got, 1, LONG_MS));
    say("%#x", got.events);
    struct pollfd entry = {.fd = fd};
    SAY(poll(&entry, 1, LONG_MS));
    say("%#x", (unsigned)entry.revents);
    ssize_t first = recv(fd, text, 16, 0);
    say("unread data or the reset: %d", first == 6 || (first == -1 && errno == ECONNRESET));
    SAY(epoll_wait(level, &got, 1, LONG_MS));
    say("still %d", (got.events & EPOLLHUP) != 0);
    MUST(close(fd));
    SAY(epoll_wait(level, &got, 1, 0));
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
