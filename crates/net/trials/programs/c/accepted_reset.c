// about: connections that were reset, or closed with data, before they are accepted
// upgraded: yes
#include "trial.h"

static void show(int fd)
{
    char text[16];
    struct place place = {.length = sizeof place.addr};
    struct pollfd entry = {.fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP};
    SAY(poll(&entry, 1, LONG_MS));
    say("events %#x", (unsigned)entry.revents);
    SAY(getpeername(fd, (struct sockaddr *)&place.addr, &place.length));
    for (int i = 0; i < 3; i++)
        SAY(recv(fd, text, sizeof text, 0));
    SAY(send(fd, "x", 1, MSG_NOSIGNAL));
    SAY(shutdown(fd, SHUT_WR));
    SAY(close(fd));
}

static void server(int first)
{
    int listener = listen_at("127.0.0.1"), port = port_of(listener);
    MUST(write(trial_meet[1], &port, sizeof port));
    for (int i = 0; i < 3; i++) {
        meet();
        show(accept_at(listener));
    }
    MUST(close(first));
}

static void client(int first)
{
    struct linger none = {.l_onoff = 1};
    int port;
    MUST(read(trial_meet[0], &port, sizeof port));
    int fd = connect_at("127.0.0.1", port);
    send_all(fd, "parting", 7);
    MUST(setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none));
    MUST(close(fd)); /* reset with data on the other side */
    meet();
    fd = connect_at("127.0.0.1", port);
    MUST(setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none));
    MUST(close(fd)); /* reset without a byte */
    meet();
    fd = connect_at("127.0.0.1", port);
    send_all(fd, "in order", 8);
    MUST(shutdown(fd, SHUT_WR));
    meet();
    char byte;
    say("reply %zd", recv(fd, &byte, 1, 0));
    say("end %zd", recv(first, &byte, 1, 0));
    MUST(close(fd));
}

int main(void)
{
    return run_pair(server, client);
}
