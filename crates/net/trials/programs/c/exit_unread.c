// about: a process that exits, is killed or replaced by exec with bytes unread resets its peer
// upgraded: yes
#include "children.h"

enum { WAYS = 4 };

static void end(int way, int port)
{
    int fd = warm_client(port);
    MUST(fcntl(fd, F_SETFD, FD_CLOEXEC));
    child_is_ready();
    await_bytes(fd, 6);
    switch (way) {
    case 0: exit(3);
    case 1: _exit(4);
    case 2: raise(SIGKILL); break;
    default: MUST(execl("/bin/true", "true", NULL));
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
    int port = find_door();
    for (int way = 0; way < WAYS; way++) {
        pid_t child = start_child(fd, end, way, port);
        meet();
        say("way %d: %#x", way, await_child(child));
    }
    round_trips(fd, CLIENT, 20, 64);
}

int main(void)
{
    return run_pair(server, client);
}
