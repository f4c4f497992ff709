// about: 64 MiB each way at once, by two threads a side, in large and odd pieces
// upgraded: yes
// limit: 60
#include "trial.h"

#define TOTAL (64u << 20)

struct flow {
    int fd;
    uint64_t stream;
    int wrong;
};

static void *pour(void *argument)
{
    struct flow *flow = argument;
    size_t size = 1 << 20;
    unsigned char *block = malloc(size);
    uint64_t at = 0;
    for (int step = 0; at < TOTAL; step++) {
        size_t piece = step % 3 == 0 ? size : step % 3 == 1 ? 4093 : 65537;
        if (piece > TOTAL - at)
            piece = TOTAL - at;
        for (size_t i = 0; i < piece; i++)
            block[i] = (unsigned char)((at + i) * (flow->stream * 2 + 1) >> 3);
        send_all(flow->fd, block, piece);
        at += piece;
    }
    MUST(shutdown(flow->fd, SHUT_WR));
    free(block);
    return NULL;
}

static void drain(struct flow *flow)
{
    size_t size = 300001;
    unsigned char *block = malloc(size);
    uint64_t at = 0;
    ssize_t got;
    while ((got = MUST(recv(flow->fd, block, size, 0))) > 0) {
        for (ssize_t i = 0; i < got; i++)
            flow->wrong += block[i] != (unsigned char)((at + (uint64_t)i) * (flow->stream * 2 + 1) >> 3);
        at += (uint64_t)got;
    }
    say("received %llu, wrong %d", (unsigned long long)at, flow->wrong);
    free(block);
}

static void both(int fd, uint64_t out, uint64_t in)
{
    struct flow sending = {.fd = fd, .stream = out}, receiving = {.fd = fd, .stream = in};
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, pour, &sending));
    drain(&receiving);
    MUST(pthread_join(thread, NULL));
}

static void server(int fd)
{
    both(fd, 1, 2);
}

static void client(int fd)
{
    both(fd, 2, 1);
}

int main(void)
{
    return run_pair(server, client);
}
