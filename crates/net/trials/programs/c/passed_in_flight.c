// about: SCM_RIGHTS: an upgraded connection passed to another process, with bytes in flight, and used there
// upgraded: yes
#include "passing.h"

static void server(int fd)
{
    char text[16] = {0};
    send_all(fd, "in flight", 9);
    meet();
    round_trips(fd, SERVER, 100, 64);
    recv_all(fd, text, 4);
    say("%s, then %zd", text, recv(fd, text, 1, 0));
}

static void client(int fd)
{
    int pair[2], status;
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        MUST(close(fd)); /* what it uses comes by the message */
        int passed = take(pair[1]);
        char text[16] = {0};
        recv_all(passed, text, 9);
        say("receiver: %s", text);
        round_trips(passed, CLIENT, 100, 64);
        send_all(passed, "done", 4);
        _exit(0);
    }
    meet();
    await_bytes(fd, 9);
    pass(pair[0], fd);
    MUST(close(fd));
    MUST(waitpid(child, &status, 0));
    say("receiver ended %d", status);
}

int main(void)
{
    return run_pair(server, client);
}
