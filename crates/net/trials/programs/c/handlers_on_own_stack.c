// about: handlers on an alternate stack of the smallest size that send and receive while the thread sleeps in recv, poll and epoll_wait
// upgraded: yes
#include "trial.h"

static int line, other, way, set;

static void on_signal(int number)
{
    char text[4];
    (void)number;
    int saved = errno;
    if (send(other, "ask?", 4, MSG_NOSIGNAL) != 4 || recv(other, text, 4, MSG_WAITALL) != 4)
        _exit(90);
    trial_signals++;
    errno = saved;
}

static void blocked(void)
{
    stack_t own = {.ss_size = (size_t)sysconf(_SC_MINSIGSTKSZ) + 16384};
    own.ss_sp = malloc(own.ss_size);
    MUST(sigaltstack(&own, NULL));
    char text[8] = {0};
    struct pollfd entry = {.fd = line, .events = POLLIN};
    struct epoll_event event;
    if (way == 1)
        while (poll(&entry, 1, LONG_MS) < 0)
            ;
    if (way == 2)
        while (epoll_wait(set, &event, 1, LONG_MS) < 0)
            ;
    recv_all(line, text, 4);
    say("way %d: %s, signals %d", way, text, (int)trial_signals);
    own.ss_flags = SS_DISABLE;
    MUST(sigaltstack(&own, NULL));
    free(own.ss_sp);
}

static void server(int fd)
{
    int beside = warm_server(open_door());
    char text[4];
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 10; j++) {
            recv_all(beside, text, 4);
            send_all(beside, "yes!", 4);
        }
        meet();
        send_all(fd, "late", 4);
        meet();
    }
}

static void client(int fd)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_RESTART};
    struct epoll_event want = {.events = EPOLLIN};
    struct sleeper sleeper;
    line = fd;
    other = warm_client(find_door());
    set = (int)MUST(epoll_create1(0));
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
    MUST(sigaction(SIGUSR1, &action, NULL));
    for (way = 0; way < 3; way++) {
        trial_signals = 0;
        start_sleeper(&sleeper, blocked);
        for (int i = 0; i < 10; i++) {
            MUST(-pthread_kill(sleeper.thread, SIGUSR1));
            while (trial_signals == i)
                poll(NULL, 0, 1);
        }
        meet();
        join_sleeper(&sleeper);
        meet();
    }
}

int main(void)
{
    return run_pair(server, client);
}
