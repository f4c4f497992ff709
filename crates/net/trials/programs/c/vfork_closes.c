// about: a vfork child that closes, duplicates and replaces its copies of a connection changes nothing for its parent
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    round_trips(fd, SERVER, 250, 64);
}

static void client(int fd)
{
    for (volatile int way = 0; way < 4; way++) {
        pid_t child = vfork();
        if (child == 0) {
            if (way == 0)
                close(fd);
            if (way == 1)
                close_range(3, ~0u, 0);
            if (way == 2)
                dup2(STDERR_FILENO, fd);
            if (way == 3)
                (void)!dup(fd);
            _exit(way);
        }
        int status;
        MUST(waitpid(child, &status, 0));
        say("way %d: exit %d", way, WEXITSTATUS(status));
        round_trips(fd, CLIENT, 50, 64);
    }
    round_trips(fd, CLIENT, 50, 64);
}

int main(void)
{
    return run_pair(server, client);
}
