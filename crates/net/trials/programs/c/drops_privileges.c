// about: a server that accepts as root and serves as another user, by setuid in a forked child: the socket stays root's
// upgraded: no
#include "trial.h"
#include <grp.h>

static void server(int fd)
{
    MUST(setgroups(0, NULL));
    MUST(setresgid(4321, 4321, 4321));
    MUST(setresuid(4321, 4321, 4321));
    round_trips(fd, SERVER, 300, 64);
    round_trips(fd, SERVER, 16, 512); /* it may not write the proof */
    char byte;
    say("end %zd", recv(fd, &byte, 1, 0));
}

static void client(int fd)
{
    round_trips(fd, CLIENT, 300, 64);
    prove(fd, CLIENT);
}

int main(void)
{
    return run_pair_at("127.0.0.1", "127.0.0.1", true, server, client);
}
