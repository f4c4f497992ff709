// about: a blocked send that a shutdown cuts short returns its count without SIGPIPE; the next one raises it
// upgraded: yes
#include "trial.h"

static int line, signals;
static volatile pid_t sleeper;

static void note(int number)
{
    signals += number == SIGPIPE;
}

static void *fill(void *unused)
{
    static char block[16 << 20];
    memset(block, 1, sizeof block); /* no page fault to sleep in later */
    sleeper = gettid();
    ssize_t sent = send(line, block, sizeof block, 0);
    say("in part %d, signals %d", sent > 0 && sent < (ssize_t)sizeof block, signals);
    SAY(send(line, block, 1, 0));
    say("signals %d", signals);
    SAY(writev(line, &(struct iovec){block, 1}, 1));
    say("signals %d", signals);
    SAY(send(line, block, 0, 0));
    say("signals %d", signals);
    return unused;
}

static void server(int fd)
{
    meet();
    say("some bytes, then the end: %d", recv_to_end(fd) > 0);
}

static void client(int fd)
{
    pthread_t thread;
    struct sigaction action = {.sa_handler = note};
    line = fd;
    MUST(sigaction(SIGPIPE, &action, NULL));
    MUST(pthread_create(&thread, NULL, fill, NULL));
    while (sleeper == 0)
        ;
    await_asleep(sleeper);
    MUST(shutdown(fd, SHUT_WR));
    MUST(pthread_join(thread, NULL));
    meet();
    char byte;
    say("end %zd", recv(fd, &byte, 1, 0));
}

int main(void)
{
    return run_pair(server, client);
}
