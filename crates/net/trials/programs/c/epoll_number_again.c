// about: a registered number that is closed while a dup lives, and reused for another connection in the same set: both are reported, each with its own data
// upgraded: yes
#include "trial.h"

static void seen(const char *what, int set, int timeout)
{
    struct epoll_event got[4];
    int rc = (int)MUST(epoll_wait(set, got, 4, timeout)), sum = 0;
    for (int i = 0; i < rc; i++)
        sum += (int)got[i].data.u32;
    say("%s: %d, data sum %d", what, rc, sum);
}

/* One wait need not report all that is ready: waits until both have been. */
static void seen_both(int set)
{
    unsigned all = 0;
    while (all != 11) {
        struct epoll_event got[4];
        int rc = (int)MUST(epoll_wait(set, got, 4, LONG_MS));
        for (int i = 0; i < rc; i++)
            all |= got[i].data.u32;
    }
    say("both");
}

static void server(int fd)
{
    int listener = open_door();
    int second = warm_server(listener);
    meet();
    send_all(fd, "old!", 4);
    meet();
    meet();
    send_all(second, "new!", 4);
    meet();
    meet();
    char byte;
    say("end %zd, end %zd", recv(fd, &byte, 1, 0), recv(second, &byte, 1, 0));
}

static void client(int fd)
{
    char text[8] = {0};
    int set = (int)MUST(epoll_create1(0)), twin = (int)MUST(fcntl(fd, F_DUPFD, 50)), port = find_door();
    struct epoll_event want = {.events = EPOLLIN, .data.u32 = 1};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
    MUST(close(fd));
    int second = warm_client(port);
    say("the same number: %d", second == fd);
    SAY(epoll_ctl(set, EPOLL_CTL_MOD, second, &want)); /* another file: not there */
    want.data.u32 = 10;
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, second, &want));
    seen("quiet", set, 0);
    meet();
    meet();
    await_bytes(twin, 4);
    seen("old", set, LONG_MS);
    meet();
    meet();
    await_bytes(second, 4);
    seen_both(set);
    recv_all(twin, text, 4);
    seen("new", set, LONG_MS);
    SAY(epoll_ctl(set, EPOLL_CTL_DEL, second, NULL));
    seen("none", set, 0);
    SAY(epoll_ctl(set, EPOLL_CTL_DEL, second, NULL));
    meet();
    MUST(close(twin));
    recv_all(second, text, 4);
    MUST(close(second));
}

int main(void)
{
    return run_pair(server, client);
}
