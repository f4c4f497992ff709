// about: connect to AF_UNSPEC takes a socket away from its peer; the same socket then connects to another one
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    char text[8];
    int listener = listen_at("127.0.0.1"), port = port_of(listener);
    MUST(write(trial_meet[1], &port, sizeof port));
    meet();
    await_event(fd, POLLIN);
    SAY(recv(fd, text, 8, 0)); /* a reset: the peer has left without a word */
    SAY(send(fd, "x", 1, MSG_NOSIGNAL));
    int second = accept_at(listener);
    round_trips(second, SERVER, 100, 64);
    recv_all(second, text, 4);
    send_all(second, text, 4);
    say("end %zd", recv(second, text, 8, 0));
}

static void client(int fd)
{
    char text[8] = {0};
    int port;
    struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    MUST(read(trial_meet[0], &port, sizeof port));
    SAY(connect(fd, &nobody, sizeof nobody));
    SAY(send(fd, "x", 1, MSG_NOSIGNAL));
    SAY(recv(fd, text, 8, MSG_DONTWAIT));
    meet();
    struct place place = place_of("127.0.0.1", port);
    SAY(connect(fd, (struct sockaddr *)&place.addr, place.length));
    round_trips(fd, CLIENT, 100, 64);
    send_all(fd, "anew", 4);
    recv_all(fd, text, 4);
    say("%s", text);
    SAY(shutdown(fd, SHUT_WR));
    MUST(close(fd));
}

int main(void)
{
    return run_pair(server, client);
}
