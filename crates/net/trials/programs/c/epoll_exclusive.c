// about: EPOLLEXCLUSIVE: accepted flags, refused flags, and several threads sharing one connection's events
// upgraded: yes
#include "trial.h"

#define EVENTS 200
static int line, sets[3];
static int counted;

static void *worker(void *argument)
{
    int set = *(int *)argument;
    for (;;) {
        struct epoll_event event;
        char byte;
        if (epoll_wait(set, &event, 1, LONG_MS) != 1)
            give_up("no event");
        ssize_t got = recv(line, &byte, 1, MSG_DONTWAIT);
        if (got == 0)
            return NULL;
        if (got == 1) {
            __atomic_fetch_add(&counted, 1, __ATOMIC_RELAXED);
            send_all(line, "k", 1);
        }
    }
}

static void server(int fd)
{
    char byte;
    for (int i = 0; i < EVENTS; i++) {
        send_all(fd, "e", 1);
        recv_all(fd, &byte, 1);
    }
    MUST(shutdown(fd, SHUT_WR));
    say("end %zd", recv(fd, &byte, 1, 0));
}

static void client(int fd)
{
    pthread_t threads[3];
    line = fd;
    for (int i = 0; i < 3; i++) {
        struct epoll_event want = {.events = EPOLLIN | EPOLLEXCLUSIVE};
        sets[i] = (int)MUST(epoll_create1(0));
        SAY(epoll_ctl(sets[i], EPOLL_CTL_ADD, fd, &want));
        SAY(epoll_ctl(sets[i], EPOLL_CTL_MOD, fd, &want));
        want.events = EPOLLIN;
        SAY(epoll_ctl(sets[i], EPOLL_CTL_MOD, fd, &want));
    }
    struct epoll_event bad = {.events = EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT};
    int other = (int)MUST(epoll_create1(0));
    SAY(epoll_ctl(other, EPOLL_CTL_ADD, fd, &bad));
    bad.events = EPOLLIN | EPOLLEXCLUSIVE;
    SAY(epoll_ctl(other, EPOLL_CTL_ADD, sets[0], &bad));
    for (int i = 0; i < 3; i++)
        MUST(pthread_create(&threads[i], NULL, worker, &sets[i]));
    for (int i = 0; i < 3; i++)
        MUST(pthread_join(threads[i], NULL));
    say("events %d", counted);
}

int main(void)
{
    return run_pair(server, client);
}
