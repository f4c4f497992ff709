// about: close_range, closefrom and a close() loop keep what they should and hit only the program's own numbers
// upgraded: yes
#include "trial.h"
#include <linux/close_range.h>

static void server(int fd)
{
    round_trips(fd, SERVER, 150, 64);
    char byte;
    say("end %zd", recv(fd, &byte, 1, 0));
}

static void client(int fd)
{
    /* Keep the connection and the output low, then close all above them. */
    int kept = (int)MUST(dup2(fd, 10)), out = (int)MUST(dup2(trial_out, 11));
    trial_out = out;
    MUST(close(fd));
    SAY(close_range(12, ~0u, 0));
    round_trips(kept, CLIENT, 50, 64);
    SAY(close_range(5, 3, 0));
    SAY(close_range(12, ~0u, 64));
    SAY(close_range(12, ~0u, CLOSE_RANGE_CLOEXEC));
    int extra = (int)MUST(dup2(kept, 40));
    SAY(close_range(40, 40, CLOSE_RANGE_CLOEXEC));
    SAY(fcntl(extra, F_GETFD));
    closefrom(12);
    SAY(fcntl(extra, F_GETFD));
    round_trips(kept, CLIENT, 50, 64);
    int last = (int)sysconf(_SC_OPEN_MAX);
    int closed = 0;
    for (int each = 12; each < last; each++)
        closed += close(each) == 0;
    say("the loop found %d open", closed);
    round_trips(kept, CLIENT, 50, 64);
    closefrom(10); /* the connection too */
    _exit(0);
}

int main(void)
{
    return run_pair(server, client);
}
