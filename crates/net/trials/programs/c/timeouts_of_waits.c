// about: timeouts of poll, ppoll, select, pselect, epoll_wait and epoll_pwait2 at their edges: zero, negative, enormous, not normal
// upgraded: yes
// flags: -Wno-nonnull
#include "trial.h"
#include <limits.h>

static int line, set;

/* What a wait with data there says, whatever its timeout. */
static void ready(void)
{
    static const int times[] = {0, -1, -1000, INT_MIN, INT_MAX};
    struct pollfd entry = {.fd = line, .events = POLLIN};
    struct epoll_event event;
    for (int i = 0; i < 5; i++) {
        say("%d: poll %d, epoll_wait %d", times[i], poll(&entry, 1, times[i]), epoll_wait(set, &event, 1, times[i]));
        say("  epoll_pwait %d", epoll_pwait(set, &event, 1, times[i], NULL));
    }
    static const struct timespec odd[] = {{0, 0}, {0, 999999999}, {0, 1000000000}, {0, -1}, {-1, 0}, {LONG_MAX, 0}, {LONG_MAX, 999999999}, {LONG_MIN, 0}};
    for (int i = 0; i < 8; i++) {
        fd_set in;
        FD_ZERO(&in);
        FD_SET(line, &in);
        say("[%ld %ld]", odd[i].tv_sec, odd[i].tv_nsec);
        SAY(ppoll(&entry, 1, &odd[i], NULL));
        SAY(pselect(line + 1, &in, NULL, NULL, &odd[i], NULL));
        SAY(epoll_pwait2(set, &event, 1, &odd[i], NULL));
    }
    static const struct timeval times_val[] = {{0, 0}, {0, 999999}, {0, 1000000}, {0, 5000000}, {0, -1}, {-1, 0}, {LONG_MAX, 0}};
    for (int i = 0; i < 7; i++) {
        struct timeval wait = times_val[i];
        fd_set in;
        FD_ZERO(&in);
        FD_SET(line, &in);
        say("[%ld %ld]", (long)wait.tv_sec, (long)wait.tv_usec);
        SAY(select(line + 1, &in, NULL, NULL, &wait));
    }
}

static void server(int fd)
{
    meet();
    send_all(fd, "data", 4);
    meet();
}

static void client(int fd)
{
    struct epoll_event want = {.events = EPOLLIN};
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    struct timespec brief = {.tv_nsec = 1};
    struct timeval short_while = {.tv_usec = 1};
    fd_set in;
    line = fd;
    set = (int)MUST(epoll_create1(0));
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
    SAY(poll(&entry, 1, 1));
    SAY(ppoll(&entry, 1, &brief, NULL));
    SAY(epoll_pwait2(set, &want, 1, &brief, NULL));
    SAY(epoll_wait(set, &want, 1, 1));
    FD_ZERO(&in);
    FD_SET(fd, &in);
    SAY(select(fd + 1, &in, NULL, NULL, &short_while));
    say("time left %ld %ld, set %d", (long)short_while.tv_sec, (long)short_while.tv_usec, FD_ISSET(fd, &in) != 0);
    SAY(select(0, NULL, NULL, NULL, &short_while));
    SAY(poll(NULL, 0, 1));
    meet();
    await_bytes(fd, 4);
    ready();
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
