// about: a relay of one poll loop between an upgraded connection, an AF_UNIX stream and a UDP socket: each keeps its own kind
// upgraded: yes
#include "trial.h"

enum { BULK = 600000 };

/* The far end of the AF_UNIX stream: sends all back, in pieces of its own. */
static void echo(int fd)
{
    static char block[30011];
    for (ssize_t got; (got = MUST(read(fd, block, sizeof block))) > 0;)
        send_all(fd, block, (size_t)got);
    _exit(0);
}

static void server(int fd)
{
    static unsigned char block[9000];
    uint64_t sent = 0, got = 0, wrong = 0;
    while (got < BULK) {
        struct pollfd entry = {.fd = fd, .events = (short)(POLLIN | (sent < BULK && sent - got < 60000 ? POLLOUT : 0))};
        MUST(poll(&entry, 1, LONG_MS));
        if (entry.revents & POLLOUT) {
            size_t size = BULK - sent < sizeof block ? BULK - sent : sizeof block;
            for (size_t i = 0; i < size; i++)
                block[i] = pattern(2, sent + i);
            ssize_t rc = send(fd, block, size, MSG_DONTWAIT | MSG_NOSIGNAL);
            sent += rc > 0 ? (uint64_t)rc : 0;
        }
        if (entry.revents & POLLIN) {
            ssize_t rc = MUST(recv(fd, block, sizeof block, 0));
            for (ssize_t i = 0; i < rc; i++)
                wrong += block[i] != pattern(2, got + (uint64_t)i);
            got += (uint64_t)rc;
        }
    }
    say("%llu back, %llu wrong", (unsigned long long)got, (unsigned long long)wrong);
    MUST(shutdown(fd, SHUT_WR));
}

/* Moves what is there from one to the other. False at the end. */
static bool move(int from, int to)
{
    static char block[20000];
    ssize_t got = MUST(read(from, block, sizeof block));
    send_all(to, block, (size_t)got);
    return got > 0;
}

static void client(int fd)
{
    int pair[2], datagrams = 0, ticks = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
    struct place place = place_of("127.0.0.1", 0);
    MUST(bind(ticks, (struct sockaddr *)&place.addr, place.length));
    place.length = sizeof place.addr;
    MUST(getsockname(ticks, (struct sockaddr *)&place.addr, &place.length));
    MUST(connect(ticks, (struct sockaddr *)&place.addr, place.length)); /* to itself */
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        MUST(close(pair[0]));
        MUST(close(fd));
        echo(pair[1]);
    }
    MUST(close(pair[1]));
    MUST(send(ticks, "tick", 4, 0));
    for (bool open = true; open;) {
        struct pollfd entries[3] = {{.fd = fd, .events = POLLIN}, {.fd = pair[0], .events = POLLIN}, {.fd = ticks, .events = POLLIN}};
        char text[8];
        MUST(poll(entries, 3, LONG_MS));
        if (entries[2].revents & POLLIN) {
            datagrams += recv(ticks, text, 8, 0) == 4;
            if (datagrams < 100)
                MUST(send(ticks, "tick", 4, 0));
        }
        if (entries[1].revents & POLLIN)
            move(pair[0], fd);
        if (entries[0].revents & POLLIN)
            open = move(fd, pair[0]);
    }
    for (char text[8]; datagrams < 100; datagrams++) {
        MUST(recv(ticks, text, 8, 0));
        MUST(send(ticks, "tick", 4, 0));
    }
    say("datagrams %d", datagrams);
    MUST(close(pair[0]));
    MUST(waitpid(child, NULL, 0));
}

int main(void)
{
    return run_pair(server, client);
}
