// about: processes forked before accept share one listener: each connection is accepted once, served and upgraded
// upgraded: yes
#include "trial.h"

#define WORKERS 3
#define COUNT 12

static void server(int fd)
{
    int listener = listen_at("127.0.0.1"), port = port_of(listener);
    for (int i = 0; i < WORKERS; i++) {
        if (MUST(fork()) > 0)
            continue;
        MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
        for (int j = 0; j < COUNT / WORKERS; j++) {
            int one = accept_at(listener);
            warm_up(one, SERVER);
            MUST(close(one));
        }
        _exit(0);
    }
    MUST(close(listener));
    MUST(write(trial_meet[1], &port, sizeof port));
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
    int port;
    MUST(read(trial_meet[0], &port, sizeof port));
    for (int i = 0; i < COUNT; i++) {
        int one = connect_at("127.0.0.1", port);
        warm_up(one, CLIENT);
        MUST(close(one));
    }
    round_trips(fd, CLIENT, 20, 64);
}

int main(void)
{
    return run_pair(server, client);
}
