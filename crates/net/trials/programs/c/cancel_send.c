// about: a thread cancelled in send to a peer that does not read; what it sent so far arrives, and more after it
// upgraded: yes
#include "trial.h"

static int line;

static void pour(void)
{
    static char block[8 << 20];
    for (;;)
        send(line, block, sizeof block, MSG_NOSIGNAL);
}

static void server(int fd)
{
    char byte;
    size_t zeroes = 0;
    meet();
    for (;;) {
        recv_all(fd, &byte, 1);
        if (byte != 0)
            break;
        zeroes++;
    }
    say("many zeroes %d, then %c", zeroes > 4096, byte);
    round_trips(fd, SERVER, 100, 64);
}

static void client(int fd)
{
    struct sleeper sleeper;
    line = fd;
    start_sleeper(&sleeper, pour);
    MUST(pthread_cancel(sleeper.thread));
    say("cancelled %d", join_sleeper(&sleeper));
    meet();
    send_all(fd, "!", 1);
    round_trips(fd, CLIENT, 100, 64);
}

int main(void)
{
    return run_pair(server, client);
}
