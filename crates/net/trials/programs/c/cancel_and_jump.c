// about: a thread cancelled in recv, and siglongjmp out of a blocking recv; the connection goes on
// upgraded: yes
#include "trial.h"
#include <setjmp.h>
#include <sys/time.h>

static int line;
static pid_t sleeper;
static pthread_barrier_t ready;
static sigjmp_buf out;

static void on_alarm(int number)
{
    (void)number;
    siglongjmp(out, 1);
}

static void *blocked(void *unused)
{
    char text[8];
    sleeper = gettid();
    pthread_barrier_wait(&ready);
    recv(line, text, 8, 0);
    say("not reached");
    return unused;
}

static void server(int fd)
{
    meet();
    round_trips(fd, SERVER, 200, 64);
}

static void client(int fd)
{
    pthread_t thread;
    void *result;
    line = fd;
    MUST(pthread_barrier_init(&ready, NULL, 2));
    MUST(pthread_create(&thread, NULL, blocked, NULL));
    pthread_barrier_wait(&ready);
    await_asleep(sleeper);
    MUST(pthread_cancel(thread));
    MUST(pthread_join(thread, &result));
    say("cancelled %d", result == PTHREAD_CANCELED);
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
