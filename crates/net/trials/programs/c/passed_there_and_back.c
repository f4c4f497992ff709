// about: a connection that goes to another process by SCM_RIGHTS and comes back, used at every stop
// upgraded: yes
#include "passing.h"

static void server(int fd)
{
    for (int i = 0; i < 6; i++) {
        char text[8] = {0};
        recv_all(fd, text, 4);
        say("%s", text);
        send_all(fd, text, 4);
    }
    round_trips(fd, SERVER, 100, 64);
}

static void ask(int fd, const char *text)
{
    char back[8] = {0};
    send_all(fd, text, 4);
    recv_all(fd, back, 4);
    if (strcmp(text, back) != 0)
        give_up("%s is not %s", back, text);
}

static void client(int fd)
{
    int pair[2], status;
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        MUST(close(fd));
        for (int i = 0; i < 3; i++) {
            int one = take(pair[1]);
            ask(one, "away");
            pass(pair[1], one);
            MUST(close(one));
        }
        _exit(0);
    }
    for (int i = 0; i < 3; i++) {
        ask(fd, "home");
        pass(pair[0], fd);
        MUST(close(fd));
        fd = take(pair[0]);
    }
    MUST(waitpid(child, &status, 0));
    say("child ended %d", status);
    round_trips(fd, CLIENT, 100, 64);
}

int main(void)
{
    return run_pair(server, client);
}
