// about: megabytes, the end, then megabytes the other way, in both orders, and both at once: every byte before each end
// upgraded: yes
#include "trial.h"

enum { BULK = 3 << 20 };

static void pour(int fd, uint64_t stream)
{
    static unsigned char block[77777];
    for (size_t at = 0; at < BULK;) {
        size_t size = BULK - at < sizeof block ? BULK - at : sizeof block;
        for (size_t i = 0; i < size; i++)
            block[i] = pattern(stream, at + i);
        send_all(fd, block, size);
        at += size;
    }
    MUST(shutdown(fd, SHUT_WR));
}

static void drain(int fd, uint64_t stream)
{
    static unsigned char block[50001];
    uint64_t at = 0, wrong = 0;
    for (ssize_t got; (got = MUST(recv(fd, block, sizeof block, 0))) > 0; at += (uint64_t)got)
        for (ssize_t i = 0; i < got; i++)
            wrong += block[i] != pattern(stream, at + (uint64_t)i);
    say("stream %llu: %llu bytes, %llu wrong", (unsigned long long)stream, (unsigned long long)at, (unsigned long long)wrong);
}

static int line;

static void pouring(void)
{
    pour(line, 6);
}

static void server(int fd)
{
    int listener = open_door();
    pour(fd, 1);
    drain(fd, 2);
    int other = warm_server(listener);
    drain(other, 3);
    pour(other, 4);
    MUST(close(other));
    line = warm_server(listener);
    pthread_t thread;
    struct sleeper pourer = {.body = pouring};
    MUST(-pthread_create(&thread, NULL, run_sleeper, &pourer));
    drain(line, 5);
    MUST(-pthread_join(thread, NULL));
}

static void pouring_back(void)
{
    pour(line, 5);
}

static void client(int fd)
{
    int port = find_door();
    drain(fd, 1);
    pour(fd, 2);
    int other = warm_client(port);
    pour(other, 3);
    drain(other, 4);
    MUST(close(other));
    line = warm_client(port);
    pthread_t thread;
    struct sleeper pourer = {.body = pouring_back};
    MUST(-pthread_create(&thread, NULL, run_sleeper, &pourer));
    drain(line, 6);
    MUST(-pthread_join(thread, NULL));
}

int main(void)
{
    return run_pair(server, client);
}
