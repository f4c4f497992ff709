// about: processes forked before accept share one listener: each connection is accepted once, served and upgraded
// upgraded: yes
#include "trial.h"

#define WORKERS 3
#define COUNT 12

static void server(int fd)
{
    int listener = open_door();
    for (int i = 0; i < WORKERS; i++) {
        if (MUST(fork()) > 0)
            continue;
        MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
        for (int j = 0; j < COUNT / WORKERS; j++)
            MUST(close(warm_server(listener)));
        _exit(0);
    }
    MUST(close(listener));
    int bad = 0, status;
    for (int i = 0; i < WORKERS; i++) {
        MUST(wait(&status));
        bad += status != 0;
    }
    say("bad workers %d", bad);
    round_trips(fd, SERVER, 20, 64);
}

static void client(int fd)
{
    int port = find_door();
    for (int i = 0; i < COUNT; i++)
        MUST(close(warm_client(port)));
    round_trips(fd, CLIENT, 20, 64);
}

int main(void)
{
    return run_pair(server, client);
}
