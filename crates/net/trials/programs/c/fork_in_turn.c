// about: after fork, parent and child use one connection in turn; the last of them closes it
// upgraded: yes
// spared: a connection that earns its channel after a fork, in one process, is not the other one's to use (docs/limits.md)
#include "trial.h"

static void server(int fd)
{
    char text[8] = {0};
    for (int i = 0; i < 40; i++) {
        recv_all(fd, text, 5);
        if (i < 4 || i > 37)
            say("%s", text);
        send_all(fd, "reply", 5);
    }
    say("end %zd", recv(fd, text, 1, 0));
}

static void turn(int fd, const char *who, int count)
{
    char text[8] = {0};
    for (int i = 0; i < count; i++) {
        send_all(fd, who, 5);
        recv_all(fd, text, 5);
        if (strcmp(text, "reply") != 0)
            say("corrupt: %s", text);
    }
}

static void client(int fd)
{
    int go[2], back[2];
    char byte = 'x';
    MUST(pipe(go));
    MUST(pipe(back));
    fflush(NULL);
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        for (int i = 0; i < 10; i++) {
            MUST(read(go[0], &byte, 1));
            turn(fd, "child", 2);
            MUST(write(back[1], &byte, 1));
        }
        MUST(read(go[0], &byte, 1));
        _exit(0); /* without a close; the parent has closed already */
    }
    for (int i = 0; i < 10; i++) {
        turn(fd, "paren", 2);
        MUST(write(go[1], &byte, 1));
        MUST(read(back[0], &byte, 1));
    }
    MUST(close(fd));
    MUST(write(go[1], &byte, 1));
    int status;
    MUST(waitpid(child, &status, 0));
    say("child %d", status);
}

int main(void)
{
    return run_pair(server, client);
}
