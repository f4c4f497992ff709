// about: a thread cancelled in send to a peer that does not read; what it sent so far arrives, and more after it
// upgraded: yes
#include "trial.h"

static int line;
static pid_t sleeper;
static pthread_barrier_t ready;

static void *pour(void *unused)
{
    static char block[8 << 20];
    sleeper = gettid();
    pthread_barrier_wait(&ready);
    for (;;)
        send(line, block, sizeof block, MSG_NOSIGNAL);
    return unused;
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
    pthread_t thread;
    void *result;
    line = fd;
    MUST(pthread_barrier_init(&ready, NULL, 2));
    MUST(pthread_create(&thread, NULL, pour, NULL));
    pthread_barrier_wait(&ready);
    await_asleep(sleeper);
    MUST(pthread_cancel(thread));
    MUST(pthread_join(thread, &result));
    say("cancelled %d", result == PTHREAD_CANCELED);
    meet();
    send_all(fd, "!", 1);
    round_trips(fd, CLIENT, 100, 64);
}

int main(void)
{
    return run_pair(server, client);
}
