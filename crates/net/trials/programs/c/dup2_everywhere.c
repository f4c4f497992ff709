// about: dup2 and dup3 onto every high number do what they say and the connection goes on
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
    int null = (int)MUST(open("/dev/null", O_WRONLY)), wrong = 0;
    int first = limit.rlim_cur > 2048 ? (int)limit.rlim_cur - 1024 : 256;
    for (int to = first; to < (int)limit.rlim_cur; to++)
        wrong += dup2(null, to) != to || write(to, "x", 1) != 1;
    say("wrong after dup2: %d", wrong);
    round_trips(fd, CLIENT, 100, 64);
    for (int to = first; to < (int)limit.rlim_cur; to++)
        wrong += fcntl(to, F_GETFD) != 0 || close(to) != 0;
    say("wrong after close: %d", wrong);
    SAY(dup2(null, (int)limit.rlim_cur));
    round_trips(fd, CLIENT, 100, 64);
}

int main(void)
{
    return run_pair(server, client);
}
