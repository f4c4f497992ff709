// about: a thread cancelled in recv, and siglongjmp out of a blocking recv; the connection goes on
// upgraded: yes
#include "trial.h"
#include <setjmp.h>
#include <sys/time.h>

static int line;
static sigjmp_buf out;

static void on_alarm(int number)
{
    (void)number;
    siglongjmp(out, 1);
}

static void blocked(void)
{
    char text[8];
    recv(line, text, 8, 0);
    say("not reached");
}

static void server(int fd)
{
    meet();
    round_trips(fd, SERVER, 200, 64);
}

static void client(int fd)
{
    struct sleeper sleeper;
    line = fd;
    start_sleeper(&sleeper, blocked);
    MUST(pthread_cancel(sleeper.thread));
    say("cancelled %d", join_sleeper(&sleeper));
    char text[8];
    signal(SIGALRM, on_alarm);
    for (volatile int i = 0; i < 3; i++) {
        struct itimerval once = {.it_value = {.tv_usec = 20000}};
        if (sigsetjmp(out, 1) == 0) {
            MUST(setitimer(ITIMER_REAL, &once, NULL));
            recv(fd, text, 8, 0);
            say("not reached");
        }
        say("jumped");
    }
    meet();
    round_trips(fd, CLIENT, 200, 64);
    say("and on");
}

int main(void)
{
    return run_pair(server, client);
}
