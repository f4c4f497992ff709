// about: blocking calls without a descriptor for a bell end as they should, and do not spin
// upgraded: yes
#include "trial.h"
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>

#define CASES 4

static int connection[CASES];

static double seconds(clockid_t clock)
{
    struct timespec now;
    MUST(clock_gettime(clock, &now));
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Whether the calling thread used its CPU for more than a tenth of the time that `wait` took. */
static int spins(void (*wait)(void))
{
    double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
    wait();
    return seconds(CLOCK_THREAD_CPUTIME_ID) - cpu > (seconds(CLOCK_MONOTONIC) - wall) / 10;
}

static void receives_in_time(void)
{
    char text[4];
    SAY(recv(connection[0], text, 4, 0));
}

static void receives_until_signal(void)
{
    char text[4];
    struct itimerval second = {.it_value.tv_sec = 1};
    MUST(setitimer(ITIMER_REAL, &second, NULL));
    SAY(recv(connection[1], text, 4, 0));
}

static void sends_in_time(void)
{
    static char block[64 << 20];
    ssize_t sent = send(connection[2], block, sizeof block, 0);
    say("sent a part: %d", sent > 0 && sent < (ssize_t)sizeof block);
}

static volatile int receiving;

static void *receives_until_cancelled(void *unused)
{
    char text[4];
    receiving = 1;
    recv(connection[3], text, 4, 0);
    return unused;
}

static void *pauses(void *unused)
{
    pause();
    return unused;
}

/* The first cancellation loads libgcc_s, which takes a descriptor. */
static void load_cancellation(void)
{
    pthread_t thread;
    MUST(-pthread_create(&thread, NULL, pauses, NULL));
    MUST(-pthread_cancel(thread));
    MUST(-pthread_join(thread, NULL));
}

static void cancels(void)
{
    pthread_t thread;
    void *result;
    MUST(-pthread_create(&thread, NULL, receives_until_cancelled, NULL));
    while (!receiving)
        poll(NULL, 0, 1);
    poll(NULL, 0, SHORT_MS); /* lets it go to sleep */
    MUST(-pthread_cancel(thread));
    MUST(-pthread_join(thread, &result));
    say("cancelled: %d", result == PTHREAD_CANCELED);
}

static void server(int fd)
{
    (void)fd;
    int listener = open_door();
    for (int i = 0; i < CASES; i++)
        connection[i] = warm_server(listener);
    meet();
    meet();
}

static void client(int fd)
{
    (void)fd;
    struct timeval second = {.tv_sec = 1};
    struct rlimit limit;
    int port = find_door();
    for (int i = 0; i < CASES; i++) {
        connection[i] = connect_at("127.0.0.1", port);
        warm_up_busily(connection[i]);
    }
    MUST(setsockopt(connection[0], SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second));
    MUST(setsockopt(connection[2], SOL_SOCKET, SO_SNDTIMEO, &second, sizeof second));
    count_signals(SIGALRM, 0);
    load_cancellation();
    MUST(getrlimit(RLIMIT_NOFILE, &limit));
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = 128;
    MUST(setrlimit(RLIMIT_NOFILE, &limit));
    while (dup(0) >= 0)
        ;
    meet();
    say("spins: %d", spins(receives_in_time));
    say("spins: %d", spins(receives_until_signal));
    say("spins: %d", spins(sends_in_time));
    cancels();
    limit.rlim_cur = before;
    MUST(setrlimit(RLIMIT_NOFILE, &limit));
    meet();
}

int main(void)
{
    return run_pair_at("127.0.0.1", "127.0.0.1", true, server, client);
}
