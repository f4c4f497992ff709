// about: a child that a handler has forked above a large poll jumps out: the parent's threads wake
// upgraded: yes
#include "trial.h"
#include <setjmp.h>

enum { MANY = 100 };
static int line, begin[2];
static pid_t child, polling;
static pthread_t poller;
static sigjmp_buf out;
static struct sleeper other;

/* Sleeps on the connection once the child has jumped. */
static void receive(void)
{
    char byte;
    MUST(read(begin[0], &byte, 1));
    say_rc("another thread", recv(line, &byte, 1, 0));
}

static void on_signal(int number)
{
    int status;
    (void)number;
    child = (pid_t)MUST(fork());
    if (child == 0)
        siglongjmp(out, 1);
    MUST(waitpid(child, &status, 0));
    say("child %d", status);
    MUST(write(begin[1], "b", 1));
    do /* It may sleep in read still. */
        await_asleep(other.tid);
    while (poll(&(struct pollfd){.fd = begin[0], .events = POLLIN}, 1, 0) > 0);
    await_asleep(other.tid);
}

static void *signal_it(void *unused)
{
    await_asleep(polling);
    MUST(-pthread_kill(poller, SIGUSR1));
    return unused;
}

static void server(int fd)
{
    meet();
    send_all(fd, "x", 1);
    meet();
    prove(fd, SERVER);
}

static void client(int fd)
{
    struct pollfd many[MANY];
    pthread_t helper;
    line = fd;
    polling = gettid();
    poller = pthread_self();
    for (int i = 0; i < MANY; i++)
        many[i] = (struct pollfd){.fd = fd, .events = POLLIN};
    MUST(pipe(begin));
    signal(SIGUSR1, on_signal);
    start_sleeper(&other, receive);
    MUST(-pthread_create(&helper, NULL, signal_it, NULL));
    if (sigsetjmp(out, 1) == 0) {
        SAY(poll(many, MANY, -1));
    } else {
        MUST(close(fd));
        _exit(0);
    }
    MUST(-pthread_join(helper, NULL));
    meet();
    join_sleeper(&other);
    meet();
    prove(fd, CLIENT);
}

int main(void)
{
    return run_pair(server, client);
}
