// about: a listener passed by SCM_RIGHTS is accepted on by its receiver, whose connections are upgraded
// upgraded: yes
#include "passing.h"

static void server(int fd)
{
    int pair[2], status, listener = open_door();
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        MUST(close(listener));
        int passed = take(pair[1]);
        for (int i = 0; i < 3; i++)
            MUST(close(warm_server(passed)));
        _exit(0);
    }
    pass(pair[0], listener);
    MUST(close(listener));
    MUST(waitpid(child, &status, 0));
    say("receiver ended %d", status);
    round_trips(fd, SERVER, 20, 64);
}

static void client(int fd)
{
    int port = find_door();
    for (int i = 0; i < 3; i++)
        MUST(close(warm_client(port)));
    round_trips(fd, CLIENT, 20, 64);
}

int main(void)
{
    return run_pair(server, client);
}
