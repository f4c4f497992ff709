// about: close in one thread while another is blocked in recv: Linux lets it sleep, data still wakes it
// upgraded: yes
#include "trial.h"

static int line;
static pid_t sleeper;
static pthread_barrier_t ready;

static void *blocked(void *unused)
{
    char text[8] = {0};
    sleeper = gettid();
    pthread_barrier_wait(&ready);
    ssize_t got = recv(line, text, 8, 0);
    say("recv %zd %s", got, text);
    return unused;
}

static void server(int fd)
{
    char byte;
    meet();
    send_all(fd, "late", 4);
    say("the last reference has gone: %zd", recv(fd, &byte, 1, 0));
    meet();
}

static void client(int fd)
{
    pthread_t thread;
    line = fd;
    MUST(pthread_barrier_init(&ready, NULL, 2));
    MUST(pthread_create(&thread, NULL, blocked, NULL));
    pthread_barrier_wait(&ready);
    await_asleep(sleeper);
    SAY(close(fd));
    SAY(fcntl(fd, F_GETFD));
    meet();
    MUST(pthread_join(thread, NULL));
    char byte;
    SAY(recv(fd, &byte, 1, 0));
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
