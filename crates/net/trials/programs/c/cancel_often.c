// about: threads are cancelled in recv and poll, and jump out of them, two hundred times: nothing is used up
// upgraded: yes
#include "trial.h"
#include <setjmp.h>

enum { TIMES = 200 };
static int line;
static sigjmp_buf out;
static pid_t self;
static pthread_t jumper;
static bool polls;

static int descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

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

static void on_signal(int number)
{
    (void)number;
    siglongjmp(out, 1);
}

static void *signal_it(void *unused)
{
    await_asleep(self);
    MUST(-pthread_kill(jumper, SIGUSR1));
    return unused;
}

static void jumped(void)
{
    pthread_t helper;
    self = gettid();
    jumper = pthread_self();
    if (sigsetjmp(out, 1) == 0) {
        MUST(-pthread_create(&helper, NULL, signal_it, NULL));
        block();
    }
    MUST(-pthread_join(helper, NULL));
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
    signal(SIGUSR1, on_signal);
    for (int i = 0; i < TIMES; i++) {
        polls = i % 2;
        if (i % 4 < 2)
            cancelled();
        else
            jumped();
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
