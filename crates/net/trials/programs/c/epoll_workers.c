// about: three workers share one set of eight connections with EPOLLONESHOT, as thread pools do
// upgraded: yes
#include "trial.h"

#define COUNT 8
#define ROUNDS 150
#define WORKERS 3

static int set, fds[COUNT], served[COUNT], ends;

static void *work(void *unused)
{
    for (;;) {
        struct epoll_event event;
        if (epoll_wait(set, &event, 1, LONG_MS) != 1)
            give_up("no event");
        uint32_t who = event.data.u32;
        if (who == COUNT)
            return unused; /* the end: an eventfd that stays readable */
        char text[32];
        ssize_t got = recv(fds[who], text, sizeof text, MSG_DONTWAIT);
        if (got == 0) {
            if (__atomic_add_fetch(&ends, 1, __ATOMIC_SEQ_CST) == COUNT) {
                int last = (int)MUST(eventfd(1, 0));
                struct epoll_event stop = {.events = EPOLLIN, .data.u32 = COUNT};
                MUST(epoll_ctl(set, EPOLL_CTL_ADD, last, &stop));
            }
            continue;
        }
        if (got > 0) {
            served[who]++; /* one-shot: nobody else has it */
            send_all(fds[who], text, (size_t)got);
        }
        event.events = EPOLLIN | EPOLLONESHOT;
        MUST(epoll_ctl(set, EPOLL_CTL_MOD, fds[who], &event));
    }
}

static void server(int first)
{
    int listener = listen_at("127.0.0.1"), port = port_of(listener);
    MUST(write(trial_meet[1], &port, sizeof port));
    set = (int)MUST(epoll_create1(0));
    for (uint32_t i = 0; i < COUNT; i++) {
        fds[i] = accept_at(listener);
        warm_up(fds[i], SERVER);
        struct epoll_event want = {.events = EPOLLIN | EPOLLONESHOT, .data.u32 = i};
        MUST(epoll_ctl(set, EPOLL_CTL_ADD, fds[i], &want));
    }
    pthread_t threads[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        MUST(pthread_create(&threads[i], NULL, work, NULL));
    for (int i = 0; i < WORKERS; i++)
        MUST(pthread_join(threads[i], NULL));
    int full = 0;
    for (int i = 0; i < COUNT; i++)
        full += served[i] == ROUNDS;
    say("served in full %d, ends %d", full, ends);
    MUST(close(first));
}

static void client(int first)
{
    int port, lines[COUNT], wrong = 0;
    MUST(read(trial_meet[0], &port, sizeof port));
    for (int i = 0; i < COUNT; i++) {
        lines[i] = connect_at("127.0.0.1", port);
        warm_up(lines[i], CLIENT);
    }
    for (int round = 0; round < ROUNDS; round++) {
        char text[16], back[16];
        for (int i = 0; i < COUNT; i++) {
            snprintf(text, sizeof text, "%03d of %05d", i, round);
            send_all(lines[i], text, 12);
        }
        for (int i = 0; i < COUNT; i++) {
            snprintf(text, sizeof text, "%03d of %05d", i, round);
            recv_all(lines[i], back, 12);
            wrong += memcmp(text, back, 12) != 0;
        }
    }
    say("wrong %d", wrong);
    for (int i = 0; i < COUNT; i++)
        MUST(shutdown(lines[i], SHUT_WR));
    char byte;
    say("end %zd", recv(first, &byte, 1, 0));
}

int main(void)
{
    return run_pair(server, client);
}
