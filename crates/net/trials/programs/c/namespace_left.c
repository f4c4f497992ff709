// about: a process that goes into another network namespace, or whose child does: its connections go on, and wake who waits
// upgraded: yes
#include "trial.h"
#include <sched.h>

static int line;

static void leave(void)
{
    SAY(unshare(CLONE_NEWNET | (geteuid() == 0 ? 0 : CLONE_NEWUSER)));
}

/* Asks, and waits for an answer that lets everybody go to sleep before it comes. */
static void ask(int way)
{
    char text[8] = {0};
    struct pollfd entry = {.fd = line, .events = POLLIN};
    send_all(line, "ask?", 4);
    if (way == 1)
        SAY(poll(&entry, 1, LONG_MS));
    if (way == 2) {
        struct epoll_event event = {.events = EPOLLIN};
        int set = (int)MUST(epoll_create1(0));
        MUST(epoll_ctl(set, EPOLL_CTL_ADD, line, &event));
        SAY(epoll_wait(set, &event, 1, LONG_MS));
        MUST(close(set));
    }
    recv_all(line, text, 4);
    say("way %d: %s", way, text);
}

static void *by_itself(void *unused)
{
    for (int way = 0; way < 3; way++)
        ask(way);
    return unused;
}

static void answer(int fd, int count)
{
    char text[4];
    for (int i = 0; i < count; i++) {
        recv_all(fd, text, 4);
        poll(NULL, 0, SHORT_MS);
        send_all(fd, text, 4);
    }
}

static void server(int fd)
{
    char byte;
    int listener = listen_at("127.0.0.1"), port = port_of(listener);
    MUST(write(trial_meet[1], &port, sizeof port));
    int other = accept_at(listener);
    answer(fd, 3);
    send_all(fd, "unread", 6);
    meet();
    answer(fd, 6);
    round_trips(other, SERVER, 100, 64);
    say("ends %zd %zd", recv(fd, &byte, 1, 0), recv(other, &byte, 1, 0));
}

static void client(int fd)
{
    int port, status;
    char text[8] = {0};
    pthread_t thread;
    MUST(read(trial_meet[0], &port, sizeof port));
    int other = connect_at("127.0.0.1", port); /* used only in the other namespace */
    line = fd;
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        leave();
        by_itself(NULL);
        _exit(0);
    }
    MUST(waitpid(child, &status, 0));
    say("child %#x", status);
    await_bytes(fd, 6);
    leave();
    recv_all(fd, text, 6);
    say("%s", text);
    meet();
    by_itself(NULL);
    MUST(pthread_create(&thread, NULL, by_itself, NULL));
    MUST(pthread_join(thread, NULL));
    long long before = witness_received(other);
    round_trips(other, CLIENT, 100, 64);
    say("by TCP %lld", witness_received(other) - before);
    MUST(close(other));
    MUST(close(fd));
}

int main(void)
{
    return run_pair(server, client);
}
