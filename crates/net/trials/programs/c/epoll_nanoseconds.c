// about: epoll_pwait2 takes less than a millisecond for a timeout of microseconds, on sets with and without upgraded connections
// upgraded: yes
#include "trial.h"

/* The shortest of many such waits, for load makes any one of them long. */
static bool keeps_microseconds(int set)
{
    long long shortest = LONG_MS * 1000000ll;
    for (int i = 0; i < 300; i++) {
        struct timespec wait = {.tv_nsec = 300000}, begun, ended;
        struct epoll_event event;
        MUST(clock_gettime(CLOCK_MONOTONIC, &begun));
        MUST(epoll_pwait2(set, &event, 1, &wait, NULL));
        MUST(clock_gettime(CLOCK_MONOTONIC, &ended));
        long long took = (ended.tv_sec - begun.tv_sec) * 1000000000ll + ended.tv_nsec - begun.tv_nsec;
        shortest = took < shortest ? took : shortest;
    }
    return shortest >= 300000 && shortest < 1000000;
}

static void server(int fd)
{
    char byte;
    say("end %zd", recv(fd, &byte, 1, 0));
}

static void client(int fd)
{
    int idle[2], set = (int)MUST(epoll_create1(0)), plain = (int)MUST(epoll_create1(0));
    struct epoll_event event = {.events = EPOLLIN};
    MUST(pipe(idle));
    MUST(epoll_ctl(plain, EPOLL_CTL_ADD, idle[0], &event));
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    say("with a connection: %d", keeps_microseconds(set));
    say("without: %d", keeps_microseconds(plain));
    MUST(close(fd));
}

int main(void)
{
    return run_pair(server, client);
}
