// about: SHUT_RD: what is there can be read, then EOF, and the peer's later data still arrives on Linux
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    char text[8] = {0};
    send_all(fd, "before", 6);
    meet();
    meet();
    say("send %zd", send(fd, "after", 5, MSG_NOSIGNAL));
    meet();
    recv_all(fd, text, 4);
    say("got %s", text);
    meet();
}

static void client(int fd)
{
    char text[16] = {0};
    meet();
    await_bytes(fd, 6);
    SAY(shutdown(fd, SHUT_RD));
    say("%zd %s", recv(fd, text, 16, 0), text);
    SAY(recv(fd, text, 16, 0));
    struct pollfd entry = {.fd = fd, .events = POLLIN | POLLRDHUP};
    int rc = poll(&entry, 1, LONG_MS);
    say("poll %d %#x", rc, (unsigned)entry.revents);
    meet();
    meet();
    await_bytes(fd, 5);
    memset(text, 0, sizeof text);
    say("%zd %s", recv(fd, text, 16, 0), text);
    SAY(send(fd, "sent", 4, 0));
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
