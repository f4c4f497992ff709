// about: one poll and one select over 30 upgraded connections, 10 pipes and a listener
// upgraded: yes
#include "trial.h"

#define COUNT 30
#define PIPES 10

static void server(int first)
{
    int listener = listen_at("127.0.0.1"), port = port_of(listener);
    struct pollfd all[COUNT + PIPES + 1];
    int ends[PIPES], replies = 0;
    MUST(write(trial_meet[1], &port, sizeof port));
    for (int i = 0; i < COUNT; i++) {
        int fd = accept_at(listener);
        warm_up(fd, SERVER);
        all[i] = (struct pollfd){.fd = fd, .events = POLLIN};
    }
    for (int i = 0; i < PIPES; i++) {
        int tube[2];
        MUST(pipe(tube));
        all[COUNT + i] = (struct pollfd){.fd = tube[0], .events = POLLIN};
        ends[i] = tube[1];
    }
    all[COUNT + PIPES] = (struct pollfd){.fd = listener, .events = POLLIN};
    meet();
    int from_pipes = 0, accepted = 0;
    while (replies < COUNT * 20 || from_pipes < PIPES || accepted < 1) {
        if (MUST(poll(all, COUNT + PIPES + 1, LONG_MS)) == 0)
            give_up("nothing: %d replies, %d pipes, %d accepted", replies, from_pipes, accepted);
        for (int i = 0; i < COUNT + PIPES + 1; i++) {
            char byte;
            if (all[i].revents == 0)
                continue;
            if (i == COUNT + PIPES) {
                MUST(close(accept_at(listener)));
                accepted++;
            } else if (i >= COUNT) {
                MUST(read(all[i].fd, &byte, 1));
                from_pipes++;
            } else {
                recv_all(all[i].fd, &byte, 1);
                send_all(all[i].fd, &byte, 1);
                replies++;
                if (replies % 60 == 0)
                    MUST(write(ends[replies / 60 % PIPES], "p", 1));
            }
        }
    }
    fd_set in;
    FD_ZERO(&in);
    for (int i = 0; i < COUNT; i++)
        FD_SET(all[i].fd, &in);
    meet(); /* one byte on the seventh, nothing elsewhere */
    int rc = select(FD_SETSIZE, &in, NULL, NULL, NULL);
    say("replies %d, pipes %d, accepted %d, select %d, the seventh %d", replies, from_pipes, accepted, rc,
        FD_ISSET(all[7].fd, &in) != 0);
    MUST(close(first));
}

static void client(int first)
{
    int port, fds[COUNT], wrong = 0;
    MUST(read(trial_meet[0], &port, sizeof port));
    for (int i = 0; i < COUNT; i++) {
        fds[i] = connect_at("127.0.0.1", port);
        warm_up(fds[i], CLIENT);
    }
    meet();
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < COUNT; i++)
            send_all(fds[i], &(char){(char)('a' + round)}, 1);
        for (int i = 0; i < COUNT; i++) {
            char byte;
            recv_all(fds[i], &byte, 1);
            wrong += byte != 'a' + round;
        }
    }
    int late = connect_at("127.0.0.1", port);
    char byte;
    say("late one ends with %zd, wrong %d", recv(late, &byte, 1, 0), wrong);
    send_all(fds[7], "7", 1);
    meet();
    say("end %zd", recv(first, &byte, 1, 0));
}

int main(void)
{
    return run_pair(server, client);
}
