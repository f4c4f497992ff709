// about: RLIMIT_NOFILE: the program gets every number up to its limit, EMFILE after, and its connection lives
// upgraded: yes
#include "trial.h"
#include <sys/resource.h>

static void server(int fd)
{
    round_trips(fd, SERVER, 200, 64);
}

static void client(int fd)
{
    struct rlimit limit;
    MUST(getrlimit(RLIMIT_NOFILE, &limit));
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = 128;
    SAY(setrlimit(RLIMIT_NOFILE, &limit));
    round_trips(fd, CLIENT, 50, 64);
    int opened = 0, last = -1, each;
    while ((each = dup(fd)) >= 0) {
        opened++;
        last = each;
    }
    say("errno %s, last number %d", strerrorname_np(errno), last);
    SAY(fcntl(fd, F_DUPFD, 128));
    SAY(dup2(fd, 128));
    SAY(socket(AF_INET, SOCK_STREAM, 0));
    SAY(epoll_create1(0));
    round_trips(fd, CLIENT, 50, 64);
    MUST(close(last));
    say("a number is free again: %d", dup(fd) >= 0); /* last, or one that a library gave back */
    limit.rlim_cur = before;
    SAY(setrlimit(RLIMIT_NOFILE, &limit));
    MUST(getrlimit(RLIMIT_NOFILE, &limit));
    say("limit reads back %d", limit.rlim_cur == before);
    round_trips(fd, CLIENT, 100, 64);
}

int main(void)
{
    return run_pair(server, client);
}
