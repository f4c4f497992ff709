// about: O_NONBLOCK: EAGAIN when empty, EAGAIN when full, writable again after a drain
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    static char block[100000];
    uint64_t sent = 0;
    meet(); /* the client has seen that there is nothing */
    MUST(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
    for (;;) {
        for (size_t i = 0; i < sizeof block; i++)
            block[i] = (char)pattern(1, sent + i);
        ssize_t rc = write(fd, block, sizeof block);
        if (rc < 0)
            break;
        sent += (uint64_t)rc;
    }
    say("full: %s", strerrorname_np(errno));
    SAY(send(fd, "x", 1, 0));
    SAY(send(fd, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL));
    struct pollfd entry = {.fd = fd, .events = POLLOUT};
    say("writable while full: %d", poll(&entry, 1, 0));
    MUST(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK));
    SAY(send(fd, "x", 1, MSG_DONTWAIT));
    MUST(write(trial_meet[1], &sent, sizeof sent));
    meet(); /* drained */
    int rc = poll(&entry, 1, LONG_MS);
    say("writable after the drain: %d %#x", rc, (unsigned)entry.revents);
    SAY(send(fd, "end", 3, 0));
    meet();
}

static void client(int fd)
{
    static unsigned char block[70000];
    uint64_t expected;
    MUST(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
    say("flag %d", (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    SAY(read(fd, block, sizeof block));
    SAY(recv(fd, block, sizeof block, 0));
    struct iovec part = {block, sizeof block};
    SAY(readv(fd, &part, 1));
    meet();
    MUST(read(trial_meet[0], &expected, sizeof expected));
    uint64_t got = 0;
    int wrong = 0;
    while (got < expected) {
        await_event(fd, POLLIN);
        ssize_t rc = MUST(read(fd, block, sizeof block));
        for (ssize_t i = 0; i < rc; i++)
            wrong += block[i] != pattern(1, got + (uint64_t)i);
        got += (uint64_t)rc;
    }
    say("all of it: %d, wrong bytes: %d", got == expected, wrong);
    meet();
    int zero = 0;
    SAY(ioctl(fd, FIONBIO, &zero)); /* blocking again, by the other door */
    say("flag %d", (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    char text[8] = {0};
    say("%zd '%s'", recv(fd, text, 3, MSG_WAITALL), text);
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
