// about: close during another thread's recv: the connection goes on in a forked child
// upgraded: yes
#include "trial.h"

static int line;

static void blocked(void)
{
    char byte;
    say("recv %zd", recv(line, &byte, 1, 0));
}

static void server(int fd)
{
    char byte;
    meet();
    send_all(fd, "w", 1);
    meet();
    prove(fd, SERVER);
    say("end %zd", recv(fd, &byte, 1, 0));
}

static void client(int fd)
{
    struct sleeper sleeper;
    int go[2], status;
    char byte;
    line = fd;
    MUST(pipe2(go, O_CLOEXEC));
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        MUST(read(go[0], &byte, 1));
        prove(fd, CLIENT);
        MUST(close(fd));
        _exit(0);
    }
    start_sleeper(&sleeper, blocked);
    MUST(close(fd));
    meet();
    join_sleeper(&sleeper); /* The parent's last use of the connection. */
    meet();
    MUST(write(go[1], "g", 1));
    MUST(waitpid(child, &status, 0));
    say("child %d", status);
}

int main(void)
{
    return run_pair(server, client);
}
