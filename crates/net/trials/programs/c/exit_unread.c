// about: a process that ends with bytes unread, by exit, _exit, a signal or an exec that closes: its peer is reset, as by close
// upgraded: yes
#include "trial.h"

enum { WAYS = 4 };

static void end(int way, int port, int notice)
{
    MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
    int fd = warm_client(port);
    MUST(fcntl(fd, F_SETFD, FD_CLOEXEC));
    MUST(write(notice, "w", 1));
    await_bytes(fd, 6);
    switch (way) {
    case 0: exit(3);
    case 1: _exit(4);
    case 2: raise(SIGKILL); break;
    default: execl("/bin/true", "true", NULL);
    }
}

static void server(int fd)
{
    int listener = open_door();
    for (int way = 0; way < WAYS; way++) {
        int other = warm_server(listener);
        char byte;
        meet();
        send_all(other, "unread", 6);
        await_event(other, POLLIN);
        SAY(recv(other, &byte, 1, 0));
        SAY(send(other, "x", 1, MSG_NOSIGNAL));
        MUST(close(other));
    }
    round_trips(fd, SERVER, 20, 64);
}

static void client(int fd)
{
    int port = find_door(), status, notice[2];
    char byte;
    MUST(pipe(notice));
    for (int way = 0; way < WAYS; way++) {
        pid_t child = (pid_t)MUST(fork());
        if (child == 0) {
            MUST(close(fd));
            end(way, port, notice[1]);
        }
        MUST(read(notice[0], &byte, 1));
        meet();
        MUST(waitpid(child, &status, 0));
        say("way %d: %#x", way, status);
    }
    round_trips(fd, CLIENT, 20, 64);
}

int main(void)
{
    return run_pair(server, client);
}
