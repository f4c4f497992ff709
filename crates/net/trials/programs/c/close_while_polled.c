// about: close in one thread while another waits in poll, select or epoll_wait on the same connection
// upgraded: yes
#include "trial.h"

static int line;
static volatile pid_t sleeper;

static void *wait_in_poll(void *unused)
{
    struct pollfd entry = {.fd = line, .events = POLLIN};
    sleeper = gettid();
    SAY(poll(&entry, 1, LONG_MS));
    say("events %#x", (unsigned)entry.revents & (POLLIN | POLLNVAL));
    return unused;
}

static void *wait_in_epoll(void *set)
{
    struct epoll_event event;
    sleeper = gettid();
    SAY(epoll_wait(*(int *)set, &event, 1, 300)); /* closed, hence no longer in the set */
    return NULL;
}

static void server(int first)
{
    int listener = listen_at("127.0.0.1"), port = port_of(listener);
    char byte;
    MUST(write(trial_meet[1], &port, sizeof port));
    int fd = accept_at(listener);
    warm_up(fd, SERVER);
    meet();
    send(fd, "wake", 4, MSG_NOSIGNAL);
    meet();
    meet();
    MUST(close(fd));
    fd = accept_at(listener);
    warm_up(fd, SERVER);
    meet();
    ssize_t got = recv(fd, &byte, 1, 0);
    say("end %zd", got);
    meet();
    MUST(close(first));
}

static void client(int first)
{
    pthread_t thread;
    int port, set = (int)MUST(epoll_create1(0));
    MUST(read(trial_meet[0], &port, sizeof port));
    line = connect_at("127.0.0.1", port);
    warm_up(line, CLIENT);
    MUST(pthread_create(&thread, NULL, wait_in_poll, NULL));
    while (sleeper == 0)
        ;
    await_asleep(sleeper);
    SAY(close(line)); /* the kernel keeps the connection for the poll */
    meet();
    MUST(pthread_join(thread, NULL));
    meet();
    meet();
    sleeper = 0;
    line = connect_at("127.0.0.1", port);
    warm_up(line, CLIENT);
    struct epoll_event want = {.events = EPOLLIN};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, line, &want));
    MUST(pthread_create(&thread, NULL, wait_in_epoll, &set));
    while (sleeper == 0)
        ;
    await_asleep(sleeper);
    SAY(close(line));
    meet();
    meet();
    MUST(pthread_join(thread, NULL));
    char byte;
    say("end %zd", recv(first, &byte, 1, 0));
}

int main(void)
{
    return run_pair(server, client);
}
