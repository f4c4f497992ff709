// about: epoll_pwait and epoll_pwait2: signal masks, EINTR, nanosecond timeouts, beside an upgraded socket
// upgraded: yes
#include "trial.h"

static volatile sig_atomic_t signals;
static void on_signal(int number)
{
    (void)number;
    signals++;
}

static void server(int fd)
{
    meet();
    send_all(fd, "data", 4);
    meet();
}

static void client(int fd)
{
    sigset_t blocked, open;
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = 3};
    int set = (int)MUST(epoll_create1(0));
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    MUST(sigaction(SIGUSR1, &action, NULL));
    sigemptyset(&open);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    MUST(sigprocmask(SIG_BLOCK, &blocked, NULL));
    raise(SIGUSR1);
    SAY(epoll_pwait(set, &event, 1, LONG_MS, &open));
    say("signals %d", (int)signals);
    raise(SIGUSR1);
    SAY(epoll_pwait(set, &event, 1, SHORT_MS, &blocked)); /* stays pending */
    say("signals %d", (int)signals);
    struct timespec wait = {.tv_sec = LONG_MS / 1000};
    SAY(epoll_pwait2(set, &event, 1, &wait, &open));
    say("signals %d", (int)signals);
    wait = (struct timespec){.tv_nsec = 1000};
    SAY(epoll_pwait2(set, &event, 1, &wait, NULL));
    SAY(epoll_pwait2(set, &event, 1, &(struct timespec){0}, NULL));
    SAY(epoll_pwait2(set, &event, 1, &(struct timespec){.tv_nsec = -1}, NULL));
    meet();
    SAY(epoll_pwait2(set, &event, 1, NULL, NULL));
    raise(SIGUSR1);
    await_bytes(fd, 4);
    say("ready wins over a pending signal: %d", epoll_pwait(set, &event, 1, LONG_MS, &open) == 1);
    sigset_t now;
    MUST(sigprocmask(SIG_SETMASK, NULL, &now));
    say("mask as before: %d", sigismember(&now, SIGUSR1));
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
