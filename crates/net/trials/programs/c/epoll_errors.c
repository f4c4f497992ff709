// about: what epoll_ctl refuses: EPERM, ELOOP, EINVAL, EEXIST, ENOENT, EBADF, a null event, beside an upgraded connection that stays in its set
// upgraded: yes
// flags: -Wno-nonnull -Wno-stringop-overflow
#include "trial.h"

static void server(int fd)
{
    meet();
    send_all(fd, "data", 4);
    meet();
}

static void client(int fd)
{
    int set = (int)MUST(epoll_create1(0)), other = (int)MUST(epoll_create1(0)), chain[6];
    int file = (int)MUST(open("file", O_RDWR | O_CREAT, 0600)), twin = (int)MUST(dup(fd)), gone = (int)MUST(dup(fd));
    struct epoll_event want = {.events = EPOLLIN, .data.u32 = 5}, got = {0};
    MUST(close(gone));
    SAY(epoll_create1(7));
    SAY(epoll_create(-1));
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, fd, NULL));
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
    SAY(epoll_ctl(set, EPOLL_CTL_MOD, twin, &want));
    SAY(epoll_ctl(set, EPOLL_CTL_DEL, twin, &want));
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, twin, &want));
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, gone, &want));
    SAY(epoll_ctl(set, EPOLL_CTL_DEL, gone, NULL));
    SAY(epoll_ctl(gone, EPOLL_CTL_ADD, fd, &want));
    SAY(epoll_ctl(fd, EPOLL_CTL_ADD, twin, &want));
    SAY(epoll_ctl(file, EPOLL_CTL_DEL, fd, NULL));
    SAY(epoll_ctl(set, 9, fd, &want));
    SAY(epoll_ctl(set, EPOLL_CTL_MOD, fd, NULL));
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, file, &want));
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, set, &want));
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, other, &want));
    SAY(epoll_ctl(other, EPOLL_CTL_ADD, set, &want)); /* a circle */
    SAY(epoll_ctl(set, EPOLL_CTL_DEL, other, NULL));
    chain[0] = set;
    for (int i = 1; i < 6; i++) { /* each watches the one before */
        chain[i] = (int)MUST(epoll_create1(0));
        say("deep %d", i);
        SAY(epoll_ctl(chain[i], EPOLL_CTL_ADD, chain[i - 1], &want));
    }
    SAY(epoll_wait(file, &got, 1, 0));
    SAY(epoll_wait(fd, &got, 1, 0));
    SAY(epoll_wait(gone, &got, 1, 0));
    SAY(epoll_wait(set, &got, 0, 0));
    SAY(epoll_wait(set, &got, -4, 0));
    meet();
    SAY(epoll_wait(set, &got, 1, LONG_MS));
    say("%#x %u", got.events, got.data.u32);
    SAY(epoll_wait(chain[3], &got, 1, LONG_MS));
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
