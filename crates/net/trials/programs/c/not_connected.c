// about: calls on sockets that are not connected yet and on listeners, and a shutdown before connect, which lasts
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    round_trips(fd, SERVER, 100, 64);
    meet();
    send_all(fd, "late", 4);
    meet();
}

static void try_all(const char *what, int fd)
{
    char text[8];
    struct pollfd entry = {.fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP};
    struct place place = {.length = sizeof place.addr};
    say("[%s]", what);
    SAY(recv(fd, text, 8, MSG_DONTWAIT));
    SAY(send(fd, text, 8, MSG_NOSIGNAL));
    SAY(read(fd, text, 8));
    SAY(recv(fd, text, 0, MSG_DONTWAIT));
    SAY(getpeername(fd, (struct sockaddr *)&place.addr, &place.length));
    SAY(poll(&entry, 1, 0));
    say("events %#x", (unsigned)entry.revents);
}

static void client(int fd)
{
    char text[8] = {0};
    struct place place = {.length = sizeof place.addr};
    MUST(getpeername(fd, (struct sockaddr *)&place.addr, &place.length));
    MUST(close(fd));
    int fresh = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
    try_all("fresh", fresh);
    int listener = listen_at("127.0.0.1");
    try_all("listener", listener);
    struct place own = place_of("127.0.0.1", port_of(listener));
    SAY(connect(fresh, (struct sockaddr *)&own.addr, own.length));
    int accepted = accept_at(listener);
    for (int i = 0; i < 100; i++) { /* one thread has both ends */
        send_all(fresh, "ask?", 4);
        recv_all(accepted, text, 4);
        send_all(accepted, "yes!", 4);
        recv_all(fresh, text, 4);
    }
    prove_alone(fresh, accepted);
    int mute = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
    SAY(shutdown(mute, SHUT_WR)); /* fails, and lasts all the same */
    SAY(connect(mute, (struct sockaddr *)&own.addr, own.length));
    SAY(send(mute, text, 4, MSG_NOSIGNAL));
    int heard = accept_at(listener);
    for (int i = 0; i < 100; i++) {
        send_all(heard, "talk", 4);
        recv_all(mute, text, 4);
    }
    SAY(send(mute, text, 4, MSG_NOSIGNAL));
    SAY(shutdown(listener, SHUT_RD));
    SAY(accept(listener, NULL, NULL));
    SAY(listen(listener, 5));
    SAY(listen(fresh, 5));
}

static void greet(int fd)
{
    round_trips(fd, CLIENT, 100, 64);
    char text[8] = {0};
    meet();
    recv_all(fd, text, 4);
    say("%s", text);
    meet();
    client(fd);
}

int main(void)
{
    return run_pair(server, greet);
}
