// about: workers sleep in a set that is empty; a connection that has earned its channel is added to it, one-shot
// upgraded: yes
#include "trial.h"

#define WORKERS 3
#define ROUNDS 20

static int set, line, stop[2];
static pthread_barrier_t ready;
static pid_t sleepers[WORKERS];
static int served;

static void *work(void *number)
{
    sleepers[(intptr_t)number] = gettid();
    pthread_barrier_wait(&ready);
    for (;;) {
        struct epoll_event event = {0};
        char text[8];
        if (epoll_wait(set, &event, 1, -1) != 1)
            give_up("no event");
        if (event.data.u32 == 2)
            return NULL; /* the pipe stays readable: all leave */
        if (recv(line, text, sizeof text, MSG_DONTWAIT) == 5) {
            __atomic_add_fetch(&served, 1, __ATOMIC_SEQ_CST);
            struct epoll_event again = {.events = EPOLLIN | EPOLLET | EPOLLRDHUP | EPOLLONESHOT, .data.u32 = 1};
            MUST(epoll_ctl(set, EPOLL_CTL_MOD, line, &again));
            send_all(line, text, 5);
        }
    }
}

static void server(int fd)
{
    pthread_t threads[WORKERS];
    line = fd;
    set = (int)MUST(epoll_create1(0));
    MUST(pipe(stop));
    MUST(pthread_barrier_init(&ready, NULL, WORKERS + 1));
    for (intptr_t i = 0; i < WORKERS; i++)
        MUST(pthread_create(&threads[i], NULL, work, (void *)i));
    pthread_barrier_wait(&ready);
    for (int i = 0; i < WORKERS; i++)
        await_asleep(sleepers[i]);
    struct epoll_event want = {.events = EPOLLIN | EPOLLET | EPOLLRDHUP | EPOLLONESHOT, .data.u32 = 1};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
    meet();
    meet();
    struct epoll_event end = {.events = EPOLLIN, .data.u32 = 2};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, stop[0], &end));
    MUST(write(stop[1], "s", 1));
    for (int i = 0; i < WORKERS; i++)
        MUST(pthread_join(threads[i], NULL));
    say("served %d", served);
}

static void client(int fd)
{
    char back[8];
    meet();
    for (int i = 0; i < ROUNDS; i++) {
        send_all(fd, "query", 5);
        recv_all(fd, back, 5);
    }
    say("answered");
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
