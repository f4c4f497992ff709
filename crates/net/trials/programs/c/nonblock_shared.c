// about: O_NONBLOCK set by a forked child holds for its parent, too, and the other way round: it is the connection's
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    meet();
    send_all(fd, "data", 4);
    round_trips(fd, SERVER, 60, 64);
}

static void in_child(int fd, int flags)
{
    int status;
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        MUST(fcntl(fd, F_SETFL, flags));
        _exit(0);
    }
    MUST(waitpid(child, &status, 0));
}

static void client(int fd)
{
    char text[8] = {0};
    SAY(recv(fd, text, 4, MSG_DONTWAIT));
    in_child(fd, O_RDWR | O_NONBLOCK);
    SAY(recv(fd, text, 4, 0));
    in_child(fd, O_RDWR);
    meet();
    say("blocks again: %zd", recv(fd, text, 4, MSG_WAITALL));
    say("%s", text);
    round_trips(fd, CLIENT, 60, 64);
}

int main(void)
{
    return run_pair(server, client);
}
