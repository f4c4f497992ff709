// about: dup2 and F_DUPFD onto every number below a low limit, while a thread waits in recv, poll or epoll_wait
// upgraded: yes
#include "trial.h"
#include <sys/resource.h>

enum { LIMIT = 1024, FIRST = 256, WAYS = 3 };

static int line, way, set;

static void waiting(void)
{
    struct pollfd entry = {.fd = line, .events = POLLIN};
    struct epoll_event event;
    char byte = 0;
    if (way == 1)
        SAY(poll(&entry, 1, LONG_MS));
    if (way == 2)
        SAY(epoll_wait(set, &event, 1, LONG_MS));
    SAY(recv(line, &byte, 1, 0));
    say("byte %c", byte);
}

static void server(int fd)
{
    for (int each = 0; each < WAYS; each++) {
        meet();
        send_all(fd, "abc" + each, 1);
        round_trips(fd, SERVER, 20, 64);
    }
}

static void client(int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    int null = (int)MUST(open("/dev/null", O_WRONLY));
    line = fd;
    set = (int)MUST(epoll_create1(0));
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    for (way = 0; way < WAYS; way++) {
        struct sleeper sleeper;
        int wrong = 0;
        start_sleeper(&sleeper, waiting);
        for (int to = FIRST; to < LIMIT; to++)
            if (to % 2)
                wrong += dup2(null, to) != to || write(to, "x", 1) != 1;
            else
                wrong += fcntl(null, F_DUPFD, to) != to || write(to, "x", 1) != 1;
        meet();
        join_sleeper(&sleeper);
        round_trips(fd, CLIENT, 20, 64);
        for (int to = FIRST; to < LIMIT; to++)
            wrong += write(to, "x", 1) != 1 || close(to) != 0;
        say("wrong: %d", wrong);
    }
}

int main(void)
{
    struct rlimit limit;
    MUST(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = LIMIT;
    MUST(setrlimit(RLIMIT_NOFILE, &limit));
    return run_pair(server, client);
}
