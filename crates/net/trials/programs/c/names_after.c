// about: getsockname, getpeername and SO_ERROR after the peer's end, after shutdown, after a reset and after close
// upgraded: yes
#include "trial.h"

static void ask(const char *when, int fd, int own)
{
    struct place here = {.length = sizeof here.addr}, there = here;
    int error = -1;
    socklen_t length = sizeof error;
    say("[%s]", when);
    SAY(getsockname(fd, (struct sockaddr *)&here.addr, &here.length));
    SAY(getpeername(fd, (struct sockaddr *)&there.addr, &there.length));
    SAY(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length));
    say("error %d, same port %d", error, ntohs(((struct sockaddr_in *)&here.addr)->sin_port) == own);
}

static void server(int fd)
{
    char text[8];
    int own = port_of(fd);
    ask("open", fd, own);
    meet();
    await_event(fd, POLLRDHUP);
    ask("peer has shut down", fd, own);
    SAY(recv(fd, text, 8, 0));
    ask("end read", fd, own);
    send_all(fd, "unread", 6);
    meet();
    meet();
    await_event(fd, POLLERR);
    ask("peer has reset", fd, own); /* takes the error */
    ask("once more", fd, own);
    SAY(recv(fd, text, 8, 0));
    int copy = (int)MUST(dup(fd));
    SAY(close(fd));
    ask("closed, with a copy", copy, own);
    ask("closed", fd, own);
}

static void client(int fd)
{
    int own = port_of(fd);
    meet();
    SAY(shutdown(fd, SHUT_WR));
    ask("shut down", fd, own);
    meet();
    await_bytes(fd, 6);
    SAY(close(fd)); /* with unread bytes */
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
