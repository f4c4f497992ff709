// about: what each mask sees of each end: half-close by the peer, by ourselves, by both, in level sets with IN, OUT, RDHUP, PRI or nothing
// upgraded: yes
#include "trial.h"

enum { SETS = 6 };
static const uint32_t masks[SETS] = {0, EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLLPRI, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLRDNORM};

static void show(const char *when, const int *sets)
{
    say("[%s]", when);
    for (int i = 0; i < SETS; i++) {
        struct epoll_event got = {0};
        int rc = (int)MUST(epoll_wait(sets[i], &got, 1, 0));
        say("%#x: %d %#x", masks[i], rc, rc > 0 ? got.events : 0);
    }
}

static void watch(int fd, int *sets)
{
    for (int i = 0; i < SETS; i++) {
        struct epoll_event want = {.events = masks[i]};
        sets[i] = (int)MUST(epoll_create1(EPOLL_CLOEXEC));
        MUST(epoll_ctl(sets[i], EPOLL_CTL_ADD, fd, &want));
    }
}

static void leave(int fd, int *sets)
{
    MUST(close(fd));
    for (int i = 0; i < SETS; i++)
        MUST(close(sets[i]));
}

static void server(int fd)
{
    int sets[SETS], listener = open_door();
    watch(fd, sets);
    show("open", sets);
    meet();
    await_event(fd, POLLRDHUP);
    show("the peer has shut down", sets);
    MUST(shutdown(fd, SHUT_WR));
    show("both have", sets);
    leave(fd, sets);
    meet();
    fd = warm_server(listener);
    watch(fd, sets);
    MUST(shutdown(fd, SHUT_WR));
    show("we have shut down", sets);
    meet();
    meet();
    await_event(fd, POLLRDHUP);
    show("both, the peer last", sets);
    leave(fd, sets);
    fd = warm_server(listener);
    watch(fd, sets);
    MUST(shutdown(fd, SHUT_RD));
    show("we have stopped reading", sets);
    MUST(shutdown(fd, SHUT_WR));
    show("and writing", sets);
    leave(fd, sets);
}

static void client(int fd)
{
    char byte;
    int port = find_door();
    meet();
    MUST(shutdown(fd, SHUT_WR));
    meet();
    say("end %zd", recv(fd, &byte, 1, 0));
    fd = warm_client(port);
    meet();
    say("end %zd", recv(fd, &byte, 1, 0));
    MUST(shutdown(fd, SHUT_WR));
    meet();
    fd = warm_client(port);
    say("end %zd", recv(fd, &byte, 1, 0));
}

int main(void)
{
    return run_pair(server, client);
}
