// about: one epoll set reports two connections in the order in which their messages came
// upgraded: yes
// spared: a connection that stays on TCP keeps no order relative to a channel (docs/limits.md)
#include <stdatomic.h>
#include "trial.h"

#define ROUNDS 60
/* A new connection for each round, one that moved before the other connection, or one after it. */
enum { FRESH, LOW, HIGH };
/* The server begins to wait when both messages are there, or waits already (or is about to). */
enum { BUSY, IDLE };

static struct {
    atomic_int connected, ready, written; /* rounds */
} *shared;

static int listener, port;

static void await(atomic_int *flag, int value)
{
    for (long i = 0; atomic_load(flag) < value; i++)
        if (i % 4096 == 4095)
            sched_yield();
}

/* Which two connections have an event, in this order; with room for one each time, or for both. */
static void next_two(int set, int room, const int fds[3], int names[2])
{
    for (int n = 0; n < 2;) {
        struct epoll_event got[2];
        char text[4];
        int rc = (int)MUST(epoll_wait(set, got, room, LONG_MS));
        if (rc == 0 || n + rc > 2)
            give_up("%d events", n + rc);
        for (int i = 0; i < rc; i++) {
            names[n] = (int)got[i].data.u32;
            recv_all(fds[names[n++]], text, 4);
        }
    }
}

static void add(int set, int fd, uint32_t name)
{
    struct epoll_event want = {.events = EPOLLIN, .data.u32 = name};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
}

static int wrong_rounds(int set, const int fds[3], int first, int second, int when, int *round)
{
    int wrong = 0;
    for (int i = 0; i < ROUNDS; i++) {
        struct epoll_event got;
        int now[3] = {fds[FRESH], fds[LOW], fds[HIGH]}, seen[2];
        if (first == FRESH || second == FRESH)
            add(set, now[FRESH] = accept_at(listener), FRESH);
        /* Nothing is left over from the last round, or to be known of the new connection. */
        await(&shared->connected, *round + 1);
        if (MUST(epoll_wait(set, &got, 1, 0)) != 0)
            give_up("not quiet");
        atomic_store(&shared->ready, ++*round);
        if (when == BUSY)
            await(&shared->written, *round);
        next_two(set, 1 + i % 2, now, seen);
        wrong += seen[0] != first || seen[1] != second;
        send_all(fds[LOW], "done", 4);
        if (first == FRESH || second == FRESH)
            MUST(close(now[FRESH]));
    }
    return wrong;
}

static void send_rounds(const int fds[3], int first, int second, int *round)
{
    for (int i = 0; i < ROUNDS; i++) {
        int now[3] = {fds[FRESH], fds[LOW], fds[HIGH]}, left = 1;
        char text[4];
        if (first == FRESH || second == FRESH)
            now[FRESH] = connect_at("127.0.0.1", port);
        atomic_store(&shared->connected, ++*round);
        await(&shared->ready, *round);
        for (volatile int spin = i * 1500; spin > 0; spin--)
            ;
        send_all(now[first], "data", 4);
        /* On a busy machine the bytes may still be on their way. */
        while (first == FRESH && left > 0)
            MUST(ioctl(now[first], TIOCOUTQ, &left));
        send_all(now[second], "data", 4);
        atomic_store(&shared->written, *round);
        recv_all(fds[LOW], text, 4);
        if (first == FRESH || second == FRESH)
            MUST(close(now[FRESH]));
    }
}

static const int pairs[][2] = {{LOW, HIGH}, {HIGH, LOW}, {FRESH, LOW}, {LOW, FRESH}, {FRESH, HIGH}};
#define PAIRS (sizeof pairs / sizeof *pairs)
static const char *names[] = {"fresh", "low", "high"};

static void server(int fd)
{
    int round = 0, fds[3] = {-1, fd, warm_server(listener)}, set = (int)MUST(epoll_create1(0));
    add(set, fd, LOW);
    add(set, fds[HIGH], HIGH);
    for (size_t i = 0; i < 2 * PAIRS; i++) {
        const int *pair = pairs[i / 2];
        int wrong = wrong_rounds(set, fds, pair[0], pair[1], i % 2 ? IDLE : BUSY, &round);
        say("%s, then %s, %s: %d in a wrong order", names[pair[0]], names[pair[1]],
            i % 2 ? "idle" : "busy", wrong);
    }
    meet();
}

static void client(int fd)
{
    int round = 0, fds[3] = {-1, fd, warm_client(port)};
    for (size_t i = 0; i < 2 * PAIRS; i++)
        send_rounds(fds, pairs[i / 2][0], pairs[i / 2][1], &round);
    meet();
}

int main(void)
{
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    listener = listen_at("127.0.0.1");
    port = port_of(listener);
    return run_pair(server, client);
}
