// about: a limit raised at run time: connections with numbers beyond the old limit are upgraded and served
// upgraded: yes
#include "trial.h"
#include <sys/resource.h>

static void set_limit(rlim_t soft)
{
    struct rlimit limit;
    MUST(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = soft;
    MUST(setrlimit(RLIMIT_NOFILE, &limit));
}

static int moved_to(int fd, int number)
{
    int moved = (int)MUST(fcntl(fd, F_DUPFD_CLOEXEC, number));
    MUST(close(fd));
    return moved;
}

static void server(int fd)
{
    set_limit(300);
    round_trips(fd, SERVER, 2, 64);
    set_limit(2000);
    fd = moved_to(fd, 1500);
    warm_up(fd, SERVER);
}

static void client(int fd)
{
    set_limit(300);
    round_trips(fd, CLIENT, 2, 64);
    set_limit(2000);
    fd = moved_to(fd, 1600);
    say("number %d", fd);
    warm_up(fd, CLIENT);
}

int main(void)
{
    return run_pair_at("127.0.0.1", "127.0.0.1", true, server, client);
}
