// about: 40 connections in one set with maxevents 1: all are served, none starves
// upgraded: yes
// spared: beside busy channels the kernel is asked every 200 us (docs/limits.md): what is fair by time is not by count
#include "trial.h"

#define COUNT 40
#define ROUNDS 25

static void server(int first)
{
    int listener = listen_at("127.0.0.1"), port = port_of(listener), fds[COUNT], answered[COUNT] = {0};
    MUST(write(trial_meet[1], &port, sizeof port));
    int set = (int)MUST(epoll_create1(0));
    for (uint32_t i = 0; i < COUNT; i++) {
        fds[i] = accept_at(listener);
        struct epoll_event want = {.events = EPOLLIN, .data.u32 = i};
        MUST(epoll_ctl(set, EPOLL_CTL_ADD, fds[i], &want));
        round_trips(fds[i], SERVER, 50, 64);
    }
    prove(fds[COUNT - 1], SERVER);
    meet();
    int done = 0;
    uint32_t longest = 0, last_seen[COUNT] = {0};
    for (uint32_t step = 1; done < COUNT * ROUNDS; step++) {
        struct epoll_event event;
        if (epoll_wait(set, &event, 1, LONG_MS) != 1)
            give_up("no event");
        uint32_t who = event.data.u32;
        char byte;
        if (MUST(recv(fds[who], &byte, 1, 0)) != 1)
            give_up("early end");
        if (last_seen[who] != 0 && step - last_seen[who] > longest)
            longest = step - last_seen[who];
        last_seen[who] = step;
        answered[who]++;
        send_all(fds[who], &byte, 1);
        done++;
    }
    int full = 0;
    for (int i = 0; i < COUNT; i++)
        full += answered[i] == ROUNDS;
    say("served in full %d, fair %d", full, longest <= 4 * COUNT);
    MUST(close(first));
    meet();
}

static void client(int first)
{
    int port, fds[COUNT];
    MUST(read(trial_meet[0], &port, sizeof port));
    for (int i = 0; i < COUNT; i++) {
        fds[i] = connect_at("127.0.0.1", port);
        round_trips(fds[i], CLIENT, 50, 64);
    }
    prove(fds[COUNT - 1], CLIENT);
    for (int i = 0; i < COUNT; i++) /* all are always readable until they are done */
        for (int round = 0; round < ROUNDS; round++)
            send_all(fds[i], "r", 1);
    meet();
    for (int i = 0; i < COUNT; i++)
        for (int round = 0; round < ROUNDS; round++) {
            char byte;
            recv_all(fds[i], &byte, 1);
        }
    meet();
    char byte;
    say("end %zd", recv(first, &byte, 1, 0));
}

int main(void)
{
    return run_pair(server, client);
}
