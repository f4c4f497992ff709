// about: shutdown in one thread wakes another that is blocked in recv, poll, select or epoll_wait
// upgraded: yes
#include "trial.h"

static int fd, way;
static pid_t sleeper;
static pthread_barrier_t ready;

static void *wait_for_end(void *unused)
{
    char text[8];
    sleeper = gettid();
    pthread_barrier_wait(&ready);
    if (way == 0) {
        say_rc("recv", recv(fd, text, 8, 0));
    } else if (way == 1) {
        struct pollfd entry = {.fd = fd, .events = POLLIN};
        int rc = poll(&entry, 1, LONG_MS);
        say("poll %d %#x", rc, (unsigned)entry.revents);
    } else if (way == 2) {
        fd_set in;
        FD_ZERO(&in);
        FD_SET(fd, &in);
        say("select %d", select(fd + 1, &in, NULL, NULL, NULL));
    } else {
        int set = (int)MUST(epoll_create1(0));
        struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP};
        MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
        int rc = epoll_wait(set, &event, 1, LONG_MS);
        say("epoll %d %#x", rc, event.events);
        MUST(close(set));
    }
    return unused;
}

static void server(int first)
{
    int listener = listen_at("127.0.0.1");
    int own = port_of(listener);
    MUST(write(trial_meet[1], &own, sizeof own));
    char text[8];
    say("first ends with %zd", recv(first, text, 8, 0));
    for (int i = 0; i < 3; i++) {
        int other = accept_at(listener);
        warm_up(other, SERVER);
        say("peer sees %zd", recv(other, text, 8, 0));
        MUST(close(other));
    }
}

static void client(int first)
{
    int port;
    MUST(read(trial_meet[0], &port, sizeof port));
    MUST(pthread_barrier_init(&ready, NULL, 2));
    for (way = 0; way < 4; way++) {
        fd = first;
        if (way > 0) {
            fd = connect_at("127.0.0.1", port);
            warm_up(fd, CLIENT);
        }
        pthread_t thread;
        MUST(pthread_create(&thread, NULL, wait_for_end, NULL));
        pthread_barrier_wait(&ready);
        await_asleep(sleeper);
        long rc = shutdown(fd, SHUT_RDWR);
        MUST(pthread_join(thread, NULL));
        say("shutdown %ld", rc);
        MUST(close(fd));
    }
}

int main(void)
{
    return run_pair(server, client);
}
