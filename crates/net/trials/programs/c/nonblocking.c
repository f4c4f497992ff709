// about: O_NONBLOCK: EAGAIN when empty, EAGAIN when full, writable again after a drain
// upgraded: yes
#include "trial.h"

/* Sends parts of the stream until one is refused. A connection that leaves its ring has room again, so
 * one refusal does not mean that the next call is refused, too. */
static const char *send_until_full(int fd, uint64_t *sent, size_t size, int flags)
{
    static char block[100000];
    ssize_t rc;
    do {
        for (size_t i = 0; i < size; i++)
            block[i] = (char)pattern(1, *sent + i);
        rc = flags < 0 ? write(fd, block, size) : send(fd, block, size, flags);
        *sent += rc > 0 ? (uint64_t)rc : 0;
    } while (rc > 0);
    return strerrorname_np(errno);
}

static void server(int fd)
{
    uint64_t sent = 0;
    meet(); /* the client has seen that there is nothing */
    MUST(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
    say("full: %s", send_until_full(fd, &sent, 100000, -1));
    say("for a byte: %s", send_until_full(fd, &sent, 1, 0));
    say("for a byte, by flag: %s", send_until_full(fd, &sent, 1, MSG_DONTWAIT | MSG_NOSIGNAL));
    struct pollfd entry = {.fd = fd, .events = POLLOUT};
    while (MUST(poll(&entry, 1, 0)) != 0)
        send_until_full(fd, &sent, 1, 0);
    say("not writable while full");
    MUST(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK));
    say("blocking, by flag: %s", send_until_full(fd, &sent, 1, MSG_DONTWAIT));
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
