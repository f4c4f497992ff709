// about: a set that is closed with members in it, its number used by a new set, and a set closed by one thread while another waits in it
// upgraded: yes
#include "trial.h"

static int set, twin;

static void waiting(void)
{
    struct epoll_event got;
    say("waited: %d", epoll_wait(set, &got, 1, LONG_MS));
}

static void server(int fd)
{
    for (int i = 0; i < 2; i++) {
        meet();
        send_all(fd, "data", 4);
        meet();
    }
    round_trips(fd, SERVER, 20, 64);
}

static void client(int fd)
{
    struct epoll_event want = {.events = EPOLLIN, .data.u32 = 1}, got = {0};
    struct sleeper sleeper;
    char text[4];
    set = (int)MUST(epoll_create1(0));
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
    int number = set;
    MUST(close(set));
    SAY(epoll_wait(set, &got, 1, 0));
    SAY(epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL));
    set = (int)MUST(epoll_create1(EPOLL_CLOEXEC));
    say("the same number %d", set == number);
    meet();
    meet();
    await_bytes(fd, 4);
    SAY(epoll_wait(set, &got, 1, 0)); /* nothing of the old one */
    SAY(epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL));
    want.data.u32 = 2;
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
    SAY(epoll_wait(set, &got, 1, LONG_MS));
    say("%u", got.data.u32);
    recv_all(fd, text, 4);
    twin = (int)MUST(dup(set));
    start_sleeper(&sleeper, waiting);
    MUST(close(set)); /* the wait goes on */
    meet();
    meet();
    join_sleeper(&sleeper);
    SAY(epoll_wait(twin, &got, 1, LONG_MS));
    recv_all(fd, text, 4);
    SAY(epoll_wait(twin, &got, 1, 0));
    MUST(close(twin));
    round_trips(fd, CLIENT, 20, 64);
}

int main(void)
{
    return run_pair(server, client);
}
