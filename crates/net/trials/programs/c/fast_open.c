// about: sendto with MSG_FASTOPEN connects; TCP_FASTOPEN and TCP_DEFER_ACCEPT on the listener; the connection is used on
// upgraded: no
#include "trial.h"

static void server(int first)
{
    int value = 5, listener = listen_at("127.0.0.1"), port = port_of(listener);
    char text[8] = {0};
    SAY(setsockopt(listener, IPPROTO_TCP, TCP_FASTOPEN, &value, sizeof value));
    MUST(write(trial_meet[1], &port, sizeof port));
    for (int i = 0; i < 2; i++) {
        int fd = accept_at(listener);
        recv_all(fd, text, 5);
        say("%s", text);
        warm_up(fd, SERVER);
        say("end %zd", recv(fd, text, 1, 0));
        MUST(close(fd));
        SAY(setsockopt(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &value, sizeof value));
    }
    MUST(close(first));
}

static void client(int first)
{
    int port;
    char byte;
    MUST(read(trial_meet[0], &port, sizeof port));
    struct place place = place_of("127.0.0.1", port);
    for (int i = 0; i < 2; i++) {
        int fd = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
        SAY(sendto(fd, "hello", 5, MSG_FASTOPEN, (struct sockaddr *)&place.addr, place.length));
        warm_up(fd, CLIENT);
        MUST(close(fd));
    }
    say("end %zd", recv(first, &byte, 1, 0));
}

int main(void)
{
    return run_pair_at("127.0.0.1", "127.0.0.1", true, server, client);
}
