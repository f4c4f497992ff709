// about: a descriptor number that is an upgraded socket, then a file, a pipe, another socket, in turn
// upgraded: yes
#include "trial.h"

#define ROUNDS 30

static void server(int first)
{
    int listener = listen_at("127.0.0.1"), port = port_of(listener);
    MUST(write(trial_meet[1], &port, sizeof port));
    for (int i = 0; i < ROUNDS; i++) {
        int fd = accept_at(listener);
        warm_up(fd, SERVER);
        char byte;
        if (recv(fd, &byte, 1, 0) != 0)
            give_up("not the end");
        MUST(close(fd));
    }
    MUST(close(first));
}

static void client(int first)
{
    int port, wrong = 0;
    MUST(read(trial_meet[0], &port, sizeof port));
    int number = (int)MUST(dup(first));
    MUST(close(number));
    for (int i = 0; i < ROUNDS; i++) {
        int fd = connect_at("127.0.0.1", port);
        wrong += fd != number;
        warm_up(fd, CLIENT);
        MUST(close(fd));
        char text[8] = {0};
        if (i % 3 == 0) { /* a file of the same number */
            int file = (int)MUST(memfd_create("x", 0));
            wrong += file != number || write(file, "file", 4) != 4 || pread(file, text, 4, 0) != 4 || strcmp(text, "file") != 0;
            MUST(close(file));
        } else if (i % 3 == 1) { /* a pipe's end, and nothing to read in it */
            int tube[2];
            MUST(pipe2(tube, O_NONBLOCK));
            wrong += tube[0] != number || read(tube[0], text, 1) != -1 || errno != EAGAIN;
            MUST(write(tube[1], "tube", 4));
            wrong += read(tube[0], text, 4) != 4 || strcmp(text, "tube") != 0;
            MUST(close(tube[0]));
            MUST(close(tube[1]));
        } else { /* a datagram socket */
            int datagram = (int)MUST(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0));
            wrong += datagram != number || recv(datagram, text, 4, 0) != -1 || errno != EAGAIN;
            MUST(close(datagram));
        }
    }
    say("wrong %d", wrong);
    char byte;
    say("end %zd", recv(first, &byte, 1, 0));
}

int main(void)
{
    return run_pair(server, client);
}
