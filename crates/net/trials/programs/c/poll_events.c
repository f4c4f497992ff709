// about: poll and ppoll: what is reported when, beside other descriptors, with a signal mask
// upgraded: yes
// variants: plain fortified
#include "trial.h"

static int asked(int fd, short events, int timeout)
{
    struct pollfd entry = {.fd = fd, .events = events};
    int rc = poll(&entry, 1, timeout);
    say("poll %#x: %d %#x", (unsigned)events, rc, (unsigned)entry.revents);
    return rc;
}

static volatile sig_atomic_t alarms;
static void on_alarm(int number)
{
    (void)number;
    alarms++;
}

static void server(int fd)
{
    meet();
    send_all(fd, "data", 4);
    meet();
    meet();
    MUST(shutdown(fd, SHUT_WR));
    meet();
    meet();
    MUST(close(fd));
    meet();
    meet();
}

static void client(int fd)
{
    int idle[2];
    MUST(pipe(idle));
    asked(fd, POLLIN, 0);
    asked(fd, POLLIN, SHORT_MS);
    asked(fd, POLLOUT, LONG_MS);
    asked(fd, POLLIN | POLLOUT, LONG_MS);
    asked(fd, 0, 0);
    say("poll nothing %d, ppoll nothing %d", poll(NULL, 0, 1), ppoll(NULL, 0, &(struct timespec){0}, NULL));
    meet();
    asked(fd, POLLIN | POLLRDNORM, LONG_MS);
    meet();
    struct pollfd entries[5] = {{.fd = idle[0], .events = POLLIN},
                                {.fd = -1, .events = POLLIN, .revents = 7},
                                {.fd = fd, .events = POLLIN},
                                {.fd = 999, .events = POLLIN},
                                {.fd = fd, .events = POLLOUT}};
    say("five: %d", poll(entries, 5, LONG_MS));
    for (int i = 0; i < 5; i++)
        say(" %d: %#x", i, (unsigned)entries[i].revents);
    MUST(write(idle[1], "p", 1));
    int rc = poll(entries, 2, LONG_MS);
    say("two: %d %#x %#x", rc, (unsigned)entries[0].revents, (unsigned)entries[1].revents);
    char text[8];
    recv_all(fd, text, 4);
    asked(fd, POLLIN, 0);

    struct sigaction action = {.sa_handler = on_alarm};
    sigset_t blocked, open;
    sigemptyset(&open);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    MUST(sigaction(SIGUSR1, &action, NULL));
    MUST(sigprocmask(SIG_BLOCK, &blocked, NULL));
    raise(SIGUSR1);
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    struct timespec wait = {.tv_sec = LONG_MS / 1000};
    SAY(ppoll(&entry, 1, &wait, &open)); /* the pending signal is delivered: EINTR */
    say("signals %d", (int)alarms);
    struct timespec little = {.tv_nsec = 100000};
    SAY(ppoll(&entry, 1, &little, NULL));
    meet();
    meet();
    asked(fd, POLLIN | POLLRDHUP, LONG_MS);
    asked(fd, POLLIN, LONG_MS);
    say("recv %zd", recv(fd, text, 4, 0));
    meet();
    meet();
    say("send %zd", send(fd, "x", 1, MSG_NOSIGNAL)); /* answered by a reset */
    await_event(fd, POLLERR);
    asked(fd, POLLIN | POLLOUT | POLLRDHUP, LONG_MS);
    asked(fd, 0, LONG_MS);
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
