// about: a connection that only a grandchild uses, after its parent and grandparent have closed their copies and ended
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    round_trips(fd, SERVER, 200, 64);
    char text[8] = {0};
    recv_all(fd, text, 5);
    say("%s", text);
    say("end %zd", recv(fd, text, 1, 0));
    meet();
}

static void client(int fd)
{
    int tube[2];
    char byte = 0;
    MUST(pipe(tube));
    round_trips(fd, CLIENT, 50, 64);
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        pid_t below = (pid_t)MUST(fork());
        if (below > 0)
            _exit(0);
        MUST(prctl(PR_SET_PDEATHSIG, 0));
        MUST(close(tube[1]));
        while (read(tube[0], &byte, 1) > 0)
            ; /* the grandparent's copy is closed */
        round_trips(fd, CLIENT, 150, 64);
        send_all(fd, "grand", 5);
        _exit(0);
    }
    int status;
    MUST(waitpid(child, &status, 0));
    say("child %d", status);
    MUST(close(fd));
    MUST(close(tube[1]));
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
