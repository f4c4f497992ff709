// about: pipe, eventfd, timerfd and signalfd in one set with a busy upgraded socket do not starve
// upgraded: yes
#include "trial.h"
#include <sys/signalfd.h>
#include <sys/timerfd.h>

static void server(int fd)
{
    char text[64];
    for (;;) { /* keeps the client's socket readable as often as it is read */
        ssize_t got = recv(fd, text, sizeof text, 0);
        if (got <= 0)
            break;
        send_all(fd, "busy", 4);
    }
    say("end");
}

static void client(int fd)
{
    char text[64];
    uint64_t count;
    sigset_t signals;
    int seen[5] = {0}, idle[2];
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    MUST(sigprocmask(SIG_BLOCK, &signals, NULL));
    MUST(pipe(idle));
    int counter = (int)MUST(eventfd(0, 0));
    int timer = (int)MUST(timerfd_create(CLOCK_MONOTONIC, 0));
    int signal_fd = (int)MUST(signalfd(-1, &signals, 0));
    int set = (int)MUST(epoll_create1(0));
    int all[5] = {fd, idle[0], counter, timer, signal_fd};
    for (uint32_t i = 0; i < 5; i++) {
        struct epoll_event want = {.events = EPOLLIN, .data.u32 = i};
        MUST(epoll_ctl(set, EPOLL_CTL_ADD, all[i], &want));
    }
    struct itimerspec soon = {.it_value = {.tv_nsec = 5000000}};
    MUST(timerfd_settime(timer, 0, &soon, NULL));
    MUST(write(idle[1], "p", 1));
    MUST(write(counter, &(uint64_t){1}, 8));
    raise(SIGUSR1);
    send_all(fd, "go", 2);
    for (long round = 0; seen[0] + seen[1] + seen[2] + seen[3] + seen[4] < 5; round++) {
        if (round > 3000000)
            give_up("starved: pipe %d eventfd %d timer %d signal %d", seen[1], seen[2], seen[3], seen[4]);
        struct epoll_event events[1]; /* maxevents of 1: the hardest to be fair with */
        MUST(epoll_wait(set, events, 1, LONG_MS));
        uint32_t which = events[0].data.u32;
        seen[which] = 1;
        if (which == 0) {
            MUST(recv(fd, text, sizeof text, 0));
            send_all(fd, "again", 5);
        } else if (which == 1)
            MUST(read(idle[0], text, 1));
        else if (which == 4)
            MUST(read(signal_fd, &(struct signalfd_siginfo){0}, sizeof(struct signalfd_siginfo)));
        else
            MUST(read(all[which], &count, 8));
    }
    say("socket %d pipe %d eventfd %d timer %d signal %d", seen[0], seen[1], seen[2], seen[3], seen[4]);
}

int main(void)
{
    return run_pair(server, client);
}
