// about: a server that locks itself into an empty directory, without /proc and /dev, with a connection it had and one made there
// upgraded: any
#include "trial.h"

static void server(int fd)
{
    int listener = open_door();
    round_trips(fd, SERVER, 50, 64);
    MUST(mkdir("empty", 0700));
    if (chroot("empty") != 0)
        give_up("chroot");
    MUST(chdir("/"));
    SAY(open("/proc/self/fd", O_RDONLY));
    round_trips(fd, SERVER, 100, 64);
    int other = accept_at(listener);
    round_trips(other, SERVER, 200, 64);
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        MUST(close(fd));
        round_trips(other, SERVER, 50, 64);
        _exit(0);
    }
    MUST(close(other));
    MUST(waitpid(child, NULL, 0));
    say("end %zd", recv(fd, &(char){0}, 1, 0));
}

static void client(int fd)
{
    int port = find_door();
    round_trips(fd, CLIENT, 150, 64);
    int other = connect_at("127.0.0.1", port);
    round_trips(other, CLIENT, 250, 64);
    say("end %zd", recv(other, &(char){0}, 1, 0));
    MUST(close(fd));
}

int main(void)
{
    return run_pair(server, client);
}
