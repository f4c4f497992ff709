// about: a small SO_SNDBUF and SO_RCVBUF on either side: large transfers both ways at once, in odd pieces
// upgraded: yes
#include "trial.h"

enum { TOTAL = 200000 };
static int line;
static uint64_t own;

static void *give(void *unused)
{
    static unsigned char block[11000];
    for (uint64_t at = 0; at < TOTAL;) {
        size_t size = 1 + (at * 13) % sizeof block;
        size = size < TOTAL - at ? size : TOTAL - at;
        for (size_t i = 0; i < size; i++)
            block[i] = pattern(own, at + i);
        send_all(line, block, size);
        at += size;
    }
    return unused;
}

static void both(int fd, uint64_t stream)
{
    static unsigned char block[4000];
    pthread_t thread;
    int wrong = 0;
    line = fd;
    own = stream;
    MUST(pthread_create(&thread, NULL, give, NULL));
    for (uint64_t at = 0; at < TOTAL;) {
        ssize_t got = MUST(recv(fd, block, 1 + at % sizeof block, 0));
        if (got == 0)
            give_up("early end");
        for (ssize_t i = 0; i < got; i++)
            wrong += block[i] != pattern(3 - stream, at + (uint64_t)i);
        at += (uint64_t)got;
    }
    MUST(pthread_join(thread, NULL));
    say("wrong %d", wrong);
}

static void narrow(int fd)
{
    int least = 8192;
    SAY(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &least, sizeof least));
    SAY(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof least));
}

static void server(int fd)
{
    narrow(fd);
    both(fd, 1);
}

static void client(int fd)
{
    both(fd, 2);
    narrow(fd);
    char byte;
    say("end %zd", recv(fd, &byte, 1, 0));
}

int main(void)
{
    return run_pair(server, client);
}
