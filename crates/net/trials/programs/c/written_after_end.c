// about: a peer that ends after it has read everything: what is sent to it then changes nothing of the end of its stream
// upgraded: yes
#include "trial.h"

enum { WAYS = 4 };

static void end(int way, int port)
{
    char words[6];
    MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
    int fd = warm_client(port);
    MUST(fcntl(fd, F_SETFD, FD_CLOEXEC));
    send_all(fd, "good-bye", 8);
    recv_all(fd, words, sizeof words);
    switch (way) {
    case 0: exit(3);
    case 1: _exit(4);
    case 2: execl("/bin/true", "true", NULL); break;
    default: syscall(SYS_exit_group, 6);
    }
}

static void server(int first)
{
    int listener = open_door();
    for (int way = 0; way < WAYS; way++) {
        char words[64];
        int line = warm_server(listener);
        send_all(line, "words.", 6);
        meet(); /* it has ended */
        say("way %d", way);
        SAY(send(line, "late", 4, MSG_NOSIGNAL));
        recv_all(line, words, 8);
        say("%.8s", words);
        SAY(recv(line, words, sizeof words, 0));
        SAY(recv(line, words, sizeof words, 0));
        MUST(close(line));
    }
    round_trips(first, SERVER, 20, 64);
}

static void client(int first)
{
    int port = find_door(), status;
    for (int way = 0; way < WAYS; way++) {
        pid_t child = (pid_t)MUST(fork());
        if (child == 0) {
            MUST(close(first));
            end(way, port);
        }
        MUST(waitpid(child, &status, 0));
        say("way %d: %#x", way, status);
        meet();
    }
    round_trips(first, CLIENT, 20, 64);
}

int main(void)
{
    return run_pair(server, client);
}
