// about: more threads blocked in recv than a segment has waiting places: no spinning, all served
// upgraded: yes
#include "trial.h"
#include <time.h>

#define CONNECTIONS 10
#define THREADS_OF_EACH 7
#define THREADS (CONNECTIONS * THREADS_OF_EACH)

static int connection[CONNECTIONS];
static int received[THREADS], spun[THREADS];

static double seconds(clockid_t clock)
{
    struct timespec now;
    MUST(clock_gettime(clock, &now));
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void *receives(void *argument)
{
    char byte;
    int number = (int)(intptr_t)argument;
    double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
    received[number] = recv(connection[number % CONNECTIONS], &byte, 1, 0) == 1;
    spun[number] = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu > (seconds(CLOCK_MONOTONIC) - wall) / 10;
    return NULL;
}

static void server(int fd)
{
    (void)fd;
    int listener = open_door();
    for (int i = 0; i < CONNECTIONS; i++)
        connection[i] = warm_server(listener);
    meet();
    poll(NULL, 0, 1500);
    for (int i = 0; i < CONNECTIONS; i++)
        send_all(connection[i], "1234567", THREADS_OF_EACH);
    meet();
}

static void client(int fd)
{
    (void)fd;
    pthread_t threads[THREADS];
    int port = find_door(), all = 0, spinners = 0;
    for (int i = 0; i < CONNECTIONS; i++)
        connection[i] = warm_client(port);
    for (intptr_t i = 0; i < THREADS; i++)
        MUST(-pthread_create(&threads[i], NULL, receives, (void *)i));
    meet();
    for (int i = 0; i < THREADS; i++) {
        MUST(-pthread_join(threads[i], NULL));
        all += received[i];
        spinners += spun[i];
    }
    say("received %d, spun %d", all, spinners);
    meet();
}

int main(void)
{
    return run_pair_at("127.0.0.1", "127.0.0.1", true, server, client);
}
