// about: a thread sleeps in poll over a dozen connections while another one is used: that is upgraded
// upgraded: yes
#include "trial.h"

#define IDLE 12

static int idle[IDLE];

static void *sleeper(void *tid)
{
    struct pollfd entries[IDLE];
    *(_Atomic pid_t *)tid = gettid();
    for (int i = 0; i < IDLE; i++)
        entries[i] = (struct pollfd){.fd = idle[i], .events = POLLIN};
    int ready = (int)MUST(poll(entries, IDLE, LONG_MS));
    say("woken: %d ready, the last %#x", ready, (unsigned)entries[IDLE - 1].revents);
    return NULL;
}

static void client(int fd)
{
    int port;
    pthread_t thread;
    _Atomic pid_t tid = 0;
    MUST(read(trial_meet[0], &port, sizeof port));
    for (int i = 0; i < IDLE; i++)
        idle[i] = connect_at("127.0.0.1", port);
    MUST(pthread_create(&thread, NULL, sleeper, &tid));
    while (tid == 0)
        sched_yield();
    await_asleep(tid);
    warm_up(fd, CLIENT);
    meet();
    MUST(pthread_join(thread, NULL));
}

static void server(int fd)
{
    int listener = listen_at("127.0.0.1"), port = port_of(listener), other = -1;
    MUST(write(trial_meet[1], &port, sizeof port));
    for (int i = 0; i < IDLE; i++)
        other = accept_at(listener);
    warm_up(fd, SERVER);
    meet();
    send_all(other, "x", 1);
    MUST(recv(fd, &port, 1, 0));
}

int main(void)
{
    return run_pair_at("127.0.0.1", "127.0.0.1", true, server, client);
}
