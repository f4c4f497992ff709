// about: a new epoll set for every wait on a connection that stays on TCP: nothing piles up
// upgraded: no
// env: SAIGA_EVIDENCE_MESSAGES=1000000
#include "trial.h"

#define SETS 20000

static long resident_kib(void)
{
    char line[256];
    long kib = -1;
    FILE *status = fopen("/proc/self/status", "r");
    if (status == NULL)
        give_up("/proc/self/status");
    while (fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "VmRSS: %ld", &kib) == 1)
            break;
    fclose(status);
    return kib;
}

static void waits(int fd, int count)
{
    for (int i = 0; i < count; i++) {
        int set = (int)MUST(epoll_create1(EPOLL_CLOEXEC));
        struct epoll_event want = {.events = EPOLLIN}, got;
        MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
        MUST(epoll_wait(set, &got, 1, 0));
        MUST(close(set));
    }
}

static void server(int fd)
{
    meet();
    prove(fd, SERVER);
}

static void client(int fd)
{
    waits(fd, 1000);
    long before = resident_kib();
    waits(fd, SETS);
    say("%s", resident_kib() - before < 256 ? "no growth" : "it grows");
    meet();
    prove(fd, CLIENT);
}

int main(void)
{
    return run_pair(server, client);
}
