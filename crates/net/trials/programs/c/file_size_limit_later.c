// about: RLIMIT_FSIZE of one page on an upgraded connection: its rings still grow and idle
// upgraded: yes
#include "trial.h"
#include <sys/resource.h>

#define PILE (200 << 10) /* more than a ring has at first, and less than it may have */

static void limit_files(void)
{
    struct rlimit limit;
    MUST(getrlimit(RLIMIT_FSIZE, &limit));
    limit.rlim_cur = 4096;
    SAY(setrlimit(RLIMIT_FSIZE, &limit));
}

static void pile(int fd, enum role role)
{
    static char block[PILE];
    limit_files();
    for (int i = 0; i < 2; i++) {
        memset(block, 'a' + role, sizeof block);
        send_all(fd, block, sizeof block);
        meet(); /* both piles lie unread */
        recv_all(fd, block, sizeof block);
        say("from the other side: %c %c", block[0], block[PILE - 1]);
        round_trips(fd, role, 50, 64);
    }
}

static void server(int fd)
{
    pile(fd, SERVER);
}

static void client(int fd)
{
    pile(fd, CLIENT);
}

int main(void)
{
    return run_pair(server, client);
}
