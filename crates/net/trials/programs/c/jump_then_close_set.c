// about: threads jump out of epoll_wait and close the set: none of its descriptors is left
// upgraded: yes
#include "jumps.h"

enum { THREADS = 20 };
static int line, set;
static pthread_barrier_t closed, over;

static void block(void)
{
    struct epoll_event event;
    epoll_wait(set, &event, 1, -1);
    say("not reached");
}

static void *jump_and_close(void *unused)
{
    jump_out_of(block);
    MUST(close(set));
    pthread_barrier_wait(&closed);
    pthread_barrier_wait(&over);
    return unused;
}

static void server(int fd)
{
    meet();
    prove(fd, SERVER);
}

static void client(int fd)
{
    pthread_t threads[THREADS];
    struct epoll_event want = {.events = EPOLLIN};
    int before = descriptors();
    line = fd;
    MUST(-pthread_barrier_init(&closed, NULL, 2));
    MUST(-pthread_barrier_init(&over, NULL, THREADS + 1));
    for (int i = 0; i < THREADS; i++) {
        set = (int)MUST(epoll_create1(0));
        MUST(epoll_ctl(set, EPOLL_CTL_ADD, line, &want));
        MUST(-pthread_create(&threads[i], NULL, jump_and_close, NULL));
        pthread_barrier_wait(&closed);
    }
    int more = descriptors() - before;
    say("more than a few descriptors are left: %d", more > THREADS / 2);
    pthread_barrier_wait(&over);
    for (int i = 0; i < THREADS; i++)
        MUST(-pthread_join(threads[i], NULL));
    meet();
    prove(fd, CLIENT);
}

int main(void)
{
    return run_pair(server, client);
}
