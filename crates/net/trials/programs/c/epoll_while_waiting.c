// about: epoll_ctl in one thread while another sleeps in epoll_wait: ADD and MOD wake it, DEL and close do not
// upgraded: yes
#include "trial.h"

static int set, line;
static pid_t sleeper;
static pthread_barrier_t ready;

static void *sleep_on_set(void *unused)
{
    struct epoll_event event = {0};
    sleeper = gettid();
    pthread_barrier_wait(&ready);
    int rc = epoll_wait(set, &event, 1, -1); /* a timeout would hide a lost wake-up */
    say("woken %d with %u", rc, event.data.u32);
    return unused;
}

static pthread_t start(void)
{
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, sleep_on_set, NULL));
    pthread_barrier_wait(&ready);
    await_asleep(sleeper);
    return thread;
}

static void server(int fd)
{
    meet();
    send_all(fd, "there before", 12);
    meet();
    meet();
    send_all(fd, "arrives", 7);
    meet();
}

static void client(int fd)
{
    char text[16];
    int idle[2];
    struct epoll_event want = {.events = EPOLLIN, .data.u32 = 1};
    line = fd;
    set = (int)MUST(epoll_create1(0));
    MUST(pipe(idle));
    MUST(pthread_barrier_init(&ready, NULL, 2));
    meet();
    await_bytes(fd, 12);
    pthread_t thread = start(); /* an empty set */
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
    MUST(pthread_join(thread, NULL));
    want.events = 0;
    MUST(epoll_ctl(set, EPOLL_CTL_MOD, fd, &want)); /* masked */
    thread = start();
    want.events = EPOLLIN;
    want.data.u32 = 2;
    MUST(epoll_ctl(set, EPOLL_CTL_MOD, fd, &want));
    MUST(pthread_join(thread, NULL));
    recv_all(fd, text, 12);
    meet();
    thread = start(); /* nothing there: data arrives while it sleeps */
    meet();
    MUST(pthread_join(thread, NULL));
    recv_all(fd, text, 7);
    struct epoll_event pipe_wanted = {.events = EPOLLIN, .data.u32 = 3};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, idle[0], &pipe_wanted));
    thread = start();
    MUST(epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL));
    MUST(write(idle[1], "p", 1)); /* only this wakes it */
    MUST(pthread_join(thread, NULL));
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
