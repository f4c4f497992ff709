// about: a listener in level, edge and one-shot sets: until all are accepted, once per arrival, once until MOD
// upgraded: yes
#include "trial.h"

static void seen(const char *what, int set, int timeout)
{
    struct epoll_event got = {0};
    int rc = (int)MUST(epoll_wait(set, &got, 1, timeout));
    say("%s: %d %#x", what, rc, rc > 0 ? got.events : 0);
}

static int watch(int fd, uint32_t events)
{
    struct epoll_event want = {.events = events};
    int set = (int)MUST(epoll_create1(0));
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
    return set;
}

static void server(int fd)
{
    int listener = open_door(), others[3];
    int level = watch(listener, EPOLLIN), edge = watch(listener, EPOLLIN | EPOLLET), once = watch(listener, EPOLLIN | EPOLLONESHOT);
    struct epoll_event again = {.events = EPOLLIN | EPOLLONESHOT};
    MUST(fcntl(listener, F_SETFL, O_RDWR | O_NONBLOCK));
    seen("level, quiet", level, 0);
    seen("edge, quiet", edge, 0);
    meet();
    meet(); /* one is there */
    seen("level", level, LONG_MS);
    seen("edge", edge, LONG_MS);
    seen("edge again", edge, 0);
    seen("one-shot", once, LONG_MS);
    meet();
    meet(); /* two are */
    seen("edge, second", edge, LONG_MS);
    seen("one-shot, silent", once, SHORT_MS);
    MUST(epoll_ctl(once, EPOLL_CTL_MOD, listener, &again));
    seen("one-shot, armed", once, LONG_MS);
    others[0] = accept_at(listener);
    seen("level, one left", level, LONG_MS);
    others[1] = accept_at(listener);
    seen("level, none left", level, 0);
    SAY(accept(listener, NULL, NULL));
    meet();
    meet();
    seen("edge, third", edge, LONG_MS);
    others[2] = accept_at(listener);
    seen("edge, none left", edge, 0);
    for (int i = 0; i < 3; i++)
        warm_up(others[i], SERVER);
    MUST(shutdown(listener, SHUT_RD));
    seen("level, shut down", level, LONG_MS);
    MUST(close(listener));
    seen("level, closed", level, 0);
    round_trips(fd, SERVER, 20, 64);
}

static void client(int fd)
{
    int port = find_door(), others[3];
    for (int i = 0; i < 3; i++) {
        meet();
        others[i] = connect_at("127.0.0.1", port);
        meet();
    }
    for (int i = 0; i < 3; i++)
        warm_up(others[i], CLIENT);
    round_trips(fd, CLIENT, 20, 64);
}

int main(void)
{
    return run_pair(server, client);
}
