// about: 300 connections opened, used a little and closed, in the order and against the order of opening
// upgraded: yes
#include "trial.h"

#define COUNT 300

static void server(int first)
{
    int listener = listen_at("127.0.0.1"), port = port_of(listener), fds[COUNT];
    MUST(write(trial_meet[1], &port, sizeof port));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++)
            fds[i] = accept_at(listener);
        for (int i = 0; i < COUNT; i++)
            round_trips(fds[i], SERVER, 1 + i % 7, 64);
        int ends = 0;
        for (int i = 0; i < COUNT; i++) {
            char byte;
            ends += recv(fds[i], &byte, 1, 0) == 0;
            MUST(close(fds[i]));
        }
        say("ends %d", ends);
    }
    MUST(close(first));
}

static void client(int first)
{
    int port, fds[COUNT];
    MUST(read(trial_meet[0], &port, sizeof port));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++)
            fds[i] = connect_at("127.0.0.1", port);
        for (int i = 0; i < COUNT; i++)
            round_trips(fds[i], CLIENT, 1 + i % 7, 64);
        for (int i = 0; i < COUNT; i++)
            MUST(close(fds[round == 1 ? COUNT - 1 - i : i]));
    }
    char byte;
    say("end %zd", recv(first, &byte, 1, 0));
}

int main(void)
{
    return run_pair(server, client);
}
