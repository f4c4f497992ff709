// about: dup2 of something else over a number in which a thread is blocked: the thread stays with its connection
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
    say("recv %zd %s", recv(line, text, 4, 0), text);
    return unused;
}

static void server(int fd)
{
    meet();
    send_all(fd, "late", 4);
    char byte;
    say("end %zd", recv(fd, &byte, 1, 0));
}

static void client(int fd)
{
    pthread_t thread;
    int tube[2];
    line = fd;
    MUST(pipe(tube));
    MUST(pthread_barrier_init(&ready, NULL, 2));
    MUST(pthread_create(&thread, NULL, blocked, NULL));
    pthread_barrier_wait(&ready);
    await_asleep(sleeper);
    say("dup2 %d", dup2(tube[0], fd) == fd);
    meet();
    MUST(pthread_join(thread, NULL));
    char text[8] = {0};
    MUST(write(tube[1], "pipe", 4));
    say("the number is the pipe: %zd %s", read(fd, text, 8), text);
}

int main(void)
{
    return run_pair(server, client);
}
