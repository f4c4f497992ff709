// about: poll after each shutdown, one's own and the peer's, in both orders: IN, OUT, HUP and RDHUP, and what select makes of them
// upgraded: yes
#include "trial.h"

static void show(const char *when, int fd)
{
    struct pollfd all = {.fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP | POLLPRI | POLLRDNORM | POLLWRNORM | POLLRDBAND | POLLWRBAND};
    struct pollfd none = {.fd = fd};
    struct timeval now = {0};
    fd_set in, out, odd;
    FD_ZERO(&in);
    FD_ZERO(&out);
    FD_ZERO(&odd);
    FD_SET(fd, &in);
    FD_SET(fd, &out);
    FD_SET(fd, &odd);
    MUST(poll(&all, 1, 0));
    MUST(poll(&none, 1, 0));
    int rc = (int)MUST(select(fd + 1, &in, &out, &odd, &now));
    say("%s: %#x, unasked %#x, select %d: %d %d %d", when, (unsigned)all.revents, (unsigned)none.revents, rc,
        FD_ISSET(fd, &in) != 0, FD_ISSET(fd, &out) != 0, FD_ISSET(fd, &odd) != 0);
}

static void server(int fd)
{
    int listener = open_door();
    show("open", fd);
    MUST(shutdown(fd, SHUT_WR));
    show("own WR", fd);
    meet();
    await_event(fd, POLLRDHUP);
    show("own WR, peer's WR", fd);
    MUST(close(fd));
    fd = warm_server(listener);
    MUST(shutdown(fd, SHUT_RD));
    show("own RD", fd);
    meet();
    meet();
    await_bytes(fd, 4);
    show("own RD, data", fd);
    MUST(shutdown(fd, SHUT_WR));
    show("own RD and WR, data", fd);
    meet();
    MUST(close(fd));
    fd = warm_server(listener);
    meet();
    await_event(fd, POLLRDHUP);
    show("peer's WR, data", fd);
    char text[4];
    recv_all(fd, text, 4);
    show("peer's WR", fd);
    MUST(shutdown(fd, SHUT_RDWR));
    show("peer's WR, own RDWR", fd);
    meet();
    await_event(fd, POLLHUP);
    MUST(close(fd));
}

static void client(int fd)
{
    int port = find_door();
    char byte;
    say("end %zd", recv(fd, &byte, 1, 0));
    meet();
    MUST(shutdown(fd, SHUT_WR));
    say("end %zd", recv(fd, &byte, 1, 0));
    MUST(close(fd));
    fd = warm_client(port);
    meet();
    send_all(fd, "data", 4);
    meet();
    meet();
    MUST(close(fd));
    fd = warm_client(port);
    send_all(fd, "data", 4);
    MUST(shutdown(fd, SHUT_WR));
    meet();
    say("end %zd", recv(fd, &byte, 1, 0));
    meet();
    MUST(close(fd));
}

int main(void)
{
    return run_pair(server, client);
}
