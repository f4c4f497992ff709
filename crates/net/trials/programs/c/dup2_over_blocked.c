// about: dup2 of something else over a number in which a thread is blocked: the thread stays with its connection
// upgraded: yes
#include "trial.h"

static int line;

static void blocked(void)
{
    char text[8] = {0};
    say("recv %zd %s", recv(line, text, 4, 0), text);
}

static void server(int fd)
{
    meet();
    send_all(fd, "late", 4);
    char byte;
    say("end %zd", recv(fd, &byte, 1, 0));
}

static void client(int fd)
{
    struct sleeper sleeper;
    int tube[2];
    line = fd;
    MUST(pipe(tube));
    start_sleeper(&sleeper, blocked);
    say("dup2 %d", dup2(tube[0], fd) == fd);
    meet();
    join_sleeper(&sleeper);
    char text[8] = {0};
    MUST(write(tube[1], "pipe", 4));
    say("the number is the pipe: %zd %s", read(fd, text, 8), text);
}

int main(void)
{
    return run_pair(server, client);
}
