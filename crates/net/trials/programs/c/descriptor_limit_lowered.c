// about: a program that lowers RLIMIT_NOFILE before its first connection is accelerated all the same
// upgraded: yes
#include "trial.h"
#include <sys/resource.h>

static void lower(void)
{
    struct rlimit limit;
    MUST(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = limit.rlim_max = 256;
    MUST(setrlimit(RLIMIT_NOFILE, &limit));
}

static void server(int fd)
{
    lower();
    warm_up(fd, SERVER);
    round_trips(fd, SERVER, 100, 64);
}

static void client(int fd)
{
    lower();
    warm_up(fd, CLIENT);
    int one = (int)MUST(dup(fd)), two = (int)MUST(dup(fd));
    say("numbers follow each other: %d", one == fd + 1 && two == fd + 2);
    round_trips(two, CLIENT, 100, 64);
}

int main(void)
{
    return run_pair_at("127.0.0.1", "127.0.0.1", true, server, client);
}
