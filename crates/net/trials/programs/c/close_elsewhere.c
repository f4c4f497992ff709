// about: close in one thread while another is blocked in recv: Linux lets it sleep, data still wakes it
// upgraded: yes
#include "trial.h"

static int line;

static void blocked(void)
{
    char text[8] = {0};
    ssize_t got = recv(line, text, 8, 0);
    say("recv %zd %s", got, text);
}

static void server(int fd)
{
    char byte;
    meet();
    send_all(fd, "late", 4);
    say("the last reference has gone: %zd", recv(fd, &byte, 1, 0));
    meet();
}

static void client(int fd)
{
    struct sleeper sleeper;
    line = fd;
    start_sleeper(&sleeper, blocked);
    SAY(close(fd));
    SAY(fcntl(fd, F_GETFD));
    meet();
    join_sleeper(&sleeper);
    char byte;
    SAY(recv(fd, &byte, 1, 0));
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
