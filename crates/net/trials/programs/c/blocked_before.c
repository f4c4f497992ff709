// about: a thread already blocked in recv, poll or epoll_wait when its connection is upgraded by another
// upgraded: yes
#include "trial.h"

/* One thread only receives, blocked most of the time; another only sends: each
 * step of the hand-shake finds the receiver inside the kernel. */
static int line, way;

static void *receive(void *unused)
{
    char text[4];
    int set = (int)MUST(epoll_create1(0));
    struct epoll_event event = {.events = EPOLLIN};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, line, &event));
    int wrong = 0;
    for (uint32_t i = 0; i < 300; i++) {
        if (way == 1)
            await_event(line, POLLIN);
        else if (way == 2 && epoll_wait(set, &event, 1, LONG_MS) != 1)
            wrong++;
        uint32_t value;
        recv_all(line, text, 4);
        memcpy(&value, text, 4);
        wrong += value != i;
    }
    say("way %d: wrong %d", way, wrong);
    MUST(close(set));
    return unused;
}

static void serve(int fd)
{
    char text[4];
    for (int i = 0; i < 300; i++) {
        recv_all(fd, text, 4);
        send_all(fd, text, 4);
    }
}

static void server(int fd)
{
    int listener = listen_at("127.0.0.1"), port = port_of(listener);
    MUST(write(trial_meet[1], &port, sizeof port));
    for (int i = 0; i < 3; i++) {
        int other = accept_at(listener);
        serve(other);
        warm_up(other, SERVER);
        char byte;
        say("end %zd", recv(other, &byte, 1, 0));
        MUST(close(other));
    }
    MUST(close(fd));
}

static void client(int fd)
{
    int port;
    MUST(read(trial_meet[0], &port, sizeof port));
    for (way = 0; way < 3; way++) {
        pthread_t thread;
        line = connect_at("127.0.0.1", port);
        MUST(pthread_create(&thread, NULL, receive, NULL));
        for (uint32_t i = 0; i < 300; i++) {
            send_all(line, &i, 4);
            if (i % 10 == 0)
                poll(NULL, 0, 1); /* lets the receiver block again */
        }
        MUST(pthread_join(thread, NULL));
        warm_up(line, CLIENT);
        MUST(close(line));
    }
    char byte;
    say("end %zd", recv(fd, &byte, 1, 0));
}

int main(void)
{
    return run_pair_at("127.0.0.1", "127.0.0.1", true, server, client);
}
