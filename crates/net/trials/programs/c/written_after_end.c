// about: what is sent to a peer that has closed does not change how its own stream ends
// upgraded: yes
#include "children.h"

enum { WAYS = 4 };

static void end(int way, int port)
{
    char words[6];
    int fd = warm_client(port);
    MUST(fcntl(fd, F_SETFD, FD_CLOEXEC));
    send_all(fd, "good-bye", 8);
    recv_all(fd, words, sizeof words);
    child_is_ready();
    switch (way) {
    case 0: exit(3);
    case 1: _exit(4);
    case 2: MUST(execl("/bin/true", "true", NULL)); break;
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
        meet(); /* the peer has ended */
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
    int port = find_door();
    for (int way = 0; way < WAYS; way++) {
        pid_t child = start_child(first, end, way, port);
        say("way %d: %#x", way, await_child(child));
        meet();
    }
    round_trips(first, CLIENT, 20, 64);
}

int main(void)
{
    return run_pair(server, client);
}
