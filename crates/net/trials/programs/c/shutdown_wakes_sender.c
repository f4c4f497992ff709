// about: shutdown in one thread ends a send that is blocked because the peer does not read
// upgraded: yes
#include "trial.h"

static int line;
static pid_t sleeper;
static pthread_barrier_t ready;

static void *fill(void *unused)
{
    static char block[8 << 20];
    sleeper = gettid();
    pthread_barrier_wait(&ready);
    ssize_t sent = send(line, block, sizeof block, MSG_NOSIGNAL);
    say("in part, or EPIPE: %d", (sent > 0 && sent < (ssize_t)sizeof block) || (sent == -1 && errno == EPIPE));
    SAY(send(line, block, 1, MSG_NOSIGNAL));
    return unused;
}

static void server(int fd)
{
    static char block[65536];
    meet();
    long long total = 0;
    for (ssize_t got; (got = MUST(recv(fd, block, sizeof block, 0))) > 0;)
        total += got;
    say("then the end, after some bytes: %d", total > 0);
    send_all(fd, "still", 5);
    meet();
}

static void client(int fd)
{
    pthread_t thread;
    char text[8] = {0};
    line = fd;
    MUST(pthread_barrier_init(&ready, NULL, 2));
    MUST(pthread_create(&thread, NULL, fill, NULL));
    pthread_barrier_wait(&ready);
    await_asleep(sleeper);
    long rc = shutdown(fd, SHUT_WR);
    MUST(pthread_join(thread, NULL));
    say("shutdown %ld", rc);
    meet();
    recv_all(fd, text, 5);
    say("%s", text);
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
