// about: cancellation that is disabled, or deferred while data are there, takes no bytes away
// upgraded: yes
#include "trial.h"

static int line;
static pid_t sleeper;
static pthread_barrier_t ready;

static void *immune(void *unused)
{
    char text[8] = {0};
    int old;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    sleeper = gettid();
    pthread_barrier_wait(&ready);
    say("immune: recv %zd %s", recv(line, text, 4, MSG_WAITALL), text);
    pthread_setcancelstate(old, NULL);
    recv(line, text, 4, 0);
    say("not reached");
    return unused;
}

static void server(int fd)
{
    meet();
    send_all(fd, "data", 4);
    meet();
    send_all(fd, "rest", 4);
    round_trips(fd, SERVER, 60, 64);
}

static void client(int fd)
{
    pthread_t thread;
    void *result;
    char text[8] = {0};
    line = fd;
    MUST(pthread_barrier_init(&ready, NULL, 2));
    MUST(pthread_create(&thread, NULL, immune, NULL));
    pthread_barrier_wait(&ready);
    await_asleep(sleeper);
    MUST(pthread_cancel(thread));
    meet();
    MUST(pthread_join(thread, &result));
    say("cancelled at last %d", result == PTHREAD_CANCELED);
    meet();
    recv_all(fd, text, 4);
    say("%s", text);
    round_trips(fd, CLIENT, 60, 64);
}

int main(void)
{
    return run_pair(server, client);
}
