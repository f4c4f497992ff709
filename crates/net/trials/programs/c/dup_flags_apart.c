// about: what copies of a descriptor share and what they do not: O_NONBLOCK, timeouts, shutdown and errors are the connection's, close-on-exec is the number's
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    meet();
    send_all(fd, "abcdef", 6);
    meet();
    close_hard(fd);
    meet();
}

static void client(int fd)
{
    char text[8] = {0};
    int twin = (int)MUST(dup(fd)), third = (int)MUST(fcntl(twin, F_DUPFD_CLOEXEC, 0)), error = -1;
    struct timeval wait = {.tv_usec = 30000};
    socklen_t length = sizeof error;
    MUST(fcntl(twin, F_SETFL, O_RDWR | O_NONBLOCK));
    SAY(recv(fd, text, 1, 0));
    SAY(read(third, text, 1));
    MUST(fcntl(third, F_SETFL, O_RDWR));
    MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait));
    SAY(recv(twin, text, 1, 0));
    say("close-on-exec %d %d %d", fcntl(fd, F_GETFD), fcntl(twin, F_GETFD), fcntl(third, F_GETFD));
    meet();
    await_bytes(third, 6);
    SAY(recv(fd, text, 2, MSG_PEEK));
    SAY(recv(twin, text, 2, 0));
    SAY(recv(third, text + 2, 2, 0));
    MUST(close(fd));
    SAY(recv(twin, text + 4, 2, 0));
    say("%s", text);
    SAY(shutdown(third, SHUT_WR));
    SAY(send(twin, "x", 1, MSG_NOSIGNAL));
    meet();
    await_event(twin, POLLHUP);
    SAY(getsockopt(twin, SOL_SOCKET, SO_ERROR, &error, &length));
    say("error %d", error);
    SAY(getsockopt(third, SOL_SOCKET, SO_ERROR, &error, &length));
    say("error %d", error);
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
