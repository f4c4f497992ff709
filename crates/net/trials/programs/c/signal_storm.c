// about: a timer signal every half millisecond, with and without SA_RESTART, through transfers both ways
// upgraded: yes
#include "trial.h"
#include <sys/time.h>

enum { TOTAL = 3 << 20 };
static volatile int ticks;

static void tick(int number)
{
    ticks += number == SIGALRM;
}

static void storm(int flags)
{
    struct sigaction action = {.sa_handler = tick, .sa_flags = flags};
    struct itimerval often = {{0, 500}, {0, 500}};
    MUST(sigaction(SIGALRM, &action, NULL));
    MUST(setitimer(ITIMER_REAL, &often, NULL));
}

static void calm(void)
{
    struct itimerval never = {0};
    MUST(setitimer(ITIMER_REAL, &never, NULL));
}

static void give(int fd, uint64_t stream)
{
    static unsigned char block[20000];
    for (uint64_t at = 0; at < TOTAL;) {
        size_t size = 1 + (at * 7) % sizeof block;
        size = size < TOTAL - at ? size : TOTAL - at;
        for (size_t i = 0; i < size; i++)
            block[i] = pattern(stream, at + i);
        send_all(fd, block, size);
        at += size;
    }
}

static void take(int fd, uint64_t stream)
{
    static unsigned char block[9000];
    int wrong = 0, others = 0;
    for (uint64_t at = 0; at < TOTAL;) {
        size_t size = sizeof block < TOTAL - at ? sizeof block : TOTAL - at;
        ssize_t got = recv(fd, block, size, at % 3 == 0 ? MSG_WAITALL : 0);
        others += got < 0 && errno != EINTR;
        if (got == 0 || others > 0)
            give_up("recv gave %zd", got);
        for (ssize_t i = 0; i < got; i++)
            wrong += block[i] != pattern(stream, at + (uint64_t)i);
        at += got > 0 ? (uint64_t)got : 0;
    }
    say("wrong %d", wrong);
}

static void server(int fd)
{
    storm(SA_RESTART);
    give(fd, 1);
    take(fd, 2);
    storm(0);
    give(fd, 3);
    take(fd, 4);
    calm();
    meet();
}

static void client(int fd)
{
    storm(0);
    take(fd, 1);
    give(fd, 2);
    storm(SA_RESTART);
    take(fd, 3);
    give(fd, 4);
    while (ticks == 0)
        pause();
    calm();
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
