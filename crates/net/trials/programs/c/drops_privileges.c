// about: a server that accepts as root and serves as another user, by setuid in a forked child
// upgraded: any
#include "trial.h"
#include <grp.h>

static void server(int fd)
{
    if (geteuid() == 0) {
        MUST(setgroups(0, NULL));
        MUST(setresgid(4321, 4321, 4321));
        MUST(setresuid(4321, 4321, 4321));
    }
    round_trips(fd, SERVER, 300, 64);
    char byte;
    say("end %zd", recv(fd, &byte, 1, 0));
}

static void client(int fd)
{
    round_trips(fd, CLIENT, 300, 64);
}

int main(void)
{
    return run_pair_at("127.0.0.1", "127.0.0.1", true, server, client);
}
