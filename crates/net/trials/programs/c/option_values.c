// about: options set on an upgraded connection keep their values, through dup and fork, and wrong values are refused
// upgraded: yes
#include "trial.h"

struct option {
    const char *name;
    int level, option, good, bad;
};

static const struct option options[] = {
    {"SO_KEEPALIVE", SOL_SOCKET, SO_KEEPALIVE, 1, 0},
    {"SO_SNDBUF", SOL_SOCKET, SO_SNDBUF, 40000, 40000}, /* reads back twice that */
    {"SO_RCVBUF", SOL_SOCKET, SO_RCVBUF, 50000, 50000},
    {"SO_PRIORITY", SOL_SOCKET, SO_PRIORITY, 3, -1},
    {"SO_RCVLOWAT", SOL_SOCKET, SO_RCVLOWAT, 1, 0},
    {"IP_TOS", IPPROTO_IP, IP_TOS, 0x10, -1},
    {"IP_TTL", IPPROTO_IP, IP_TTL, 33, 300},
    {"TCP_KEEPIDLE", IPPROTO_TCP, TCP_KEEPIDLE, 50, 0},
    {"TCP_KEEPINTVL", IPPROTO_TCP, TCP_KEEPINTVL, 20, 40000},
    {"TCP_KEEPCNT", IPPROTO_TCP, TCP_KEEPCNT, 4, 200},
    {"TCP_USER_TIMEOUT", IPPROTO_TCP, TCP_USER_TIMEOUT, 9000, -5},
    {"TCP_LINGER2", IPPROTO_TCP, TCP_LINGER2, 20, -1},
    {"TCP_SYNCNT", IPPROTO_TCP, TCP_SYNCNT, 3, 999},
    {"TCP_MAXSEG", IPPROTO_TCP, TCP_MAXSEG, 1000, 7},
    {"TCP_NODELAY", IPPROTO_TCP, TCP_NODELAY, 7, 0},
    {"TCP_NOTSENT_LOWAT", IPPROTO_TCP, TCP_NOTSENT_LOWAT, 16384, 100},
};

static int read_back(int fd, const struct option *option)
{
    int value = -1;
    socklen_t length = sizeof value;
    MUST(getsockopt(fd, option->level, option->option, &value, &length));
    return value;
}

static void server(int fd)
{
    meet();
    round_trips(fd, SERVER, 100, 64);
    meet();
}

static void client(int fd)
{
    int twin = (int)MUST(dup(fd));
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const struct option *option = &options[i];
        say_rc(option->name, setsockopt(twin, option->level, option->option, &option->good, sizeof(int)));
        say_rc("  bad", setsockopt(fd, option->level, option->option, &option->bad, sizeof(int)));
        (void)!setsockopt(twin, option->level, option->option, &option->good, sizeof(int));
        if (option->option != TCP_MAXSEG) /* reads back what is in use */
            say("  reads %d", read_back(fd, option));
    }
    meet();
    round_trips(fd, CLIENT, 100, 64);
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        for (size_t i = 0; i < sizeof options / sizeof *options; i++)
            if (options[i].option != TCP_MAXSEG)
                say("child: %s %d", options[i].name, read_back(twin, &options[i]));
        _exit(0);
    }
    MUST(waitpid(child, NULL, 0));
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
