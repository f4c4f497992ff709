/* A bystander that measures how it is served.
 *
 * pulse PORT    connects to 127.0.0.1 and talks until it may be upgraded
 * stdin "beat MS": PINGs of Redis, one after the other, for MS milliseconds;
 * prints "TRIPS P50 P999 MAX", times in microseconds. */
#include "trial.h"

#define MOST (4 << 20)

static int fd;
static uint32_t times[MOST];

static void trip(void)
{
    char answer[7];
    send_all(fd, "PING\r\n", 6);
    recv_all(fd, answer, sizeof answer);
    if (memcmp(answer, "+PONG\r\n", sizeof answer) != 0)
        give_up("another answer");
}

static int by_time(const void *a, const void *b)
{
    uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
    return (one > other) - (one < other);
}

static void beat(long ms)
{
    size_t count = 0;
    uint64_t begin = now_ns(), end = begin + (uint64_t)ms * 1000000, before = begin;
    while (before < end && count < MOST) {
        trip();
        uint64_t after = now_ns();
        times[count++] = (uint32_t)((after - before) / 1000);
        before = after;
    }
    qsort(times, count, sizeof *times, by_time);
    printf("%zu %u %u %u\n", count, times[count / 2], times[count - 1 - count / 1000],
           times[count - 1]);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
    fd = connect_at("127.0.0.1", atoi(argv[1]));
    for (int i = 0; i < 300; i++)
        trip();
    printf("ready\n");
    fflush(stdout);
    return obey("beat %ld", beat);
}
