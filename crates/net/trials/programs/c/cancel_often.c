// about: 200 threads cancelled in, or jumping out of, recv and poll leave no descriptors behind
// upgraded: yes
#include "jumps.h"

enum { TIMES = 200 };
static int line;
static bool polls;

static void block(void)
{
    char text[8];
    struct pollfd entry = {.fd = line, .events = POLLIN};
    if (polls)
        poll(&entry, 1, -1);
    else
        recv(line, text, 8, 0);
    say("not reached");
}

static void cancelled(void)
{
    struct sleeper sleeper;
    start_sleeper(&sleeper, block);
    MUST(-pthread_cancel(sleeper.thread));
    if (!join_sleeper(&sleeper))
        say("not cancelled");
}

static void server(int fd)
{
    char byte;
    meet();
    round_trips(fd, SERVER, 50, 64);
    prove(fd, SERVER);
    say("end %zd", recv(fd, &byte, 1, 0));
    meet();
}

static void client(int fd)
{
    int early = 0;
    line = fd;
    for (int i = 0; i < TIMES; i++) {
        polls = i % 2;
        if (i % 4 < 2)
            cancelled();
        else
            jump_out_of(block);
        if (i == 10)
            early = descriptors();
    }
    int more = descriptors() - early;
    if (more > 8)
        say("%d descriptors more", more);
    meet();
    round_trips(fd, CLIENT, 50, 64);
    prove(fd, CLIENT);
    MUST(close(fd));
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
