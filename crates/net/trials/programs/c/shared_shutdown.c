// about: shutdown by a forked child ends the connection for its parent, too: a blocked recv, and what the parent sends
// upgraded: yes
// spared: a connection that earns its channel after a fork, in one process, is not the other one's to use (docs/limits.md)
#include "trial.h"

static void server(int fd)
{
    char text[8] = {0};
    recv_all(fd, text, 4);
    say("%s", text);
    SAY(recv(fd, text, 8, 0));
    send_all(fd, "last", 4);
    meet();
    meet();
}

static void client(int fd)
{
    char text[8] = {0};
    int status;
    send_all(fd, "both", 4);
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        MUST(shutdown(fd, SHUT_WR));
        _exit(0);
    }
    MUST(waitpid(child, &status, 0));
    SAY(send(fd, "more", 4, MSG_NOSIGNAL));
    recv_all(fd, text, 4);
    say("%s", text);
    meet();
    pid_t parent = getpid();
    child = (pid_t)MUST(fork());
    if (child == 0) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/stat", parent);
        for (char state = 'R'; state != 'S';) {
            char line[512];
            int file = (int)MUST(open(path, O_RDONLY));
            ssize_t got = MUST(read(file, line, sizeof line - 1));
            MUST(close(file));
            line[got] = 0;
            state = strrchr(line, ')')[2];
            poll(NULL, 0, 1);
        }
        MUST(shutdown(fd, SHUT_RD));
        _exit(0);
    }
    SAY(recv(fd, text, 8, 0));
    MUST(waitpid(child, &status, 0));
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
