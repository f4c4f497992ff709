// about: forks while other threads are in the middle of send and recv: neither the children nor the traffic is disturbed
// upgraded: yes
#include "trial.h"

enum { TOTAL = 4 << 20, CHILDREN = 30 };
static int line, wrong;

static void *give(void *unused)
{
    static unsigned char block[3000];
    for (uint64_t at = 0; at < TOTAL;) {
        size_t size = sizeof block < TOTAL - at ? sizeof block : TOTAL - at;
        for (size_t i = 0; i < size; i++)
            block[i] = pattern(1, at + i);
        send_all(line, block, size);
        at += size;
    }
    return unused;
}

static void *take(void *unused)
{
    static unsigned char block[5000];
    for (uint64_t at = 0; at < TOTAL;) {
        ssize_t got = MUST(recv(line, block, sizeof block, 0));
        if (got == 0)
            give_up("early end at %llu", (unsigned long long)at);
        for (ssize_t i = 0; i < got; i++)
            wrong += block[i] != pattern(1, at + (uint64_t)i);
        at += (uint64_t)got;
    }
    return unused;
}

static void run(int fd, bool forks)
{
    pthread_t threads[2];
    line = fd;
    MUST(pthread_create(&threads[0], NULL, give, NULL));
    MUST(pthread_create(&threads[1], NULL, take, NULL));
    int bad = 0, status;
    for (int i = 0; forks && i < CHILDREN; i++) {
        pid_t child = (pid_t)MUST(fork());
        if (child == 0) {
            if (i % 3 == 0)
                close(line);
            if (i % 3 == 1)
                execl("/bin/true", "true", NULL);
            _exit(0);
        }
        MUST(waitpid(child, &status, 0));
        bad += status != 0;
    }
    for (int i = 0; i < 2; i++)
        MUST(pthread_join(threads[i], NULL));
    say("wrong %d, children %d", wrong, bad);
}

static void server(int fd)
{
    run(fd, false);
}

static void client(int fd)
{
    MUST(fcntl(fd, F_SETFD, FD_CLOEXEC));
    run(fd, true);
    char byte;
    say("end %zd", recv(fd, &byte, 1, 0));
}

int main(void)
{
    return run_pair(server, client);
}
