// about: a signal handler receives on the connection that the main program receives on: each byte comes once
// upgraded: any, the handler may take what the main program would have counted as evidence
#include "trial.h"
#include <sys/time.h>

#define BYTES 60000
#define PIECE 60

static int line;
static volatile long long count, sum;

/* Takes what a call has received; signals are blocked, or this is the handler. */
static void take(const unsigned char *bytes, ssize_t got)
{
    for (ssize_t i = 0; i < got; i++)
        sum += bytes[i];
    count += got;
}

static void on_timer(int number)
{
    (void)number;
    int saved = errno;
    unsigned char bytes[PIECE];
    ssize_t got = recv(line, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got > 0)
        take(bytes, got);
    errno = saved;
}

static void server(int fd)
{
    unsigned char bytes[PIECE];
    long long all = 0;
    for (int at = 0; at < BYTES; at += PIECE) {
        for (int i = 0; i < PIECE; i++)
            all += bytes[i] = pattern(1, (uint64_t)(at + i));
        send_all(fd, bytes, sizeof bytes);
    }
    MUST(shutdown(fd, SHUT_WR));
    say("sent %d, sum %lld", BYTES, all);
    char byte;
    say("end %zd", recv(fd, &byte, 1, 0));
}

static void client(int fd)
{
    line = fd;
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
    MUST(sigaction(SIGALRM, &action, NULL));
    struct itimerval often = {.it_value = {.tv_usec = 200}, .it_interval = {.tv_usec = 200}};
    MUST(setitimer(ITIMER_REAL, &often, NULL));
    unsigned char bytes[PIECE];
    ssize_t got;
    while ((got = MUST(recv(fd, bytes, sizeof bytes, 0))) > 0) {
        MUST(sigprocmask(SIG_BLOCK, &alarm, NULL));
        take(bytes, got);
        MUST(sigprocmask(SIG_UNBLOCK, &alarm, NULL));
    }
    MUST(setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL));
    say("received %lld, sum %lld", count, sum);
}

int main(void)
{
    return run_pair(server, client);
}
