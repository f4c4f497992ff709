// about: POLLNVAL of closed numbers, negative numbers left out and empty masks beside an upgraded connection; EINVAL and EBADF of select
// upgraded: yes
#include "trial.h"
#include <sys/resource.h>

static void show(const char *what, struct pollfd *entries, nfds_t count, int timeout)
{
    int rc = poll(entries, count, timeout);
    say("%s: %d", what, rc);
    for (nfds_t i = 0; i < count; i++)
        say("  %#x", (unsigned)entries[i].revents);
}

static void server(int fd)
{
    meet();
    send_all(fd, "data", 4);
    meet();
    meet();
}

static void client(int fd)
{
    int gone = (int)MUST(dup(fd));
    MUST(close(gone));
    struct pollfd entries[5] = {
        {.fd = gone, .events = POLLIN},        {.fd = -1, .events = POLLIN, .revents = 0x7f},
        {.fd = fd, .events = POLLIN},          {.fd = fd, .events = 0},
        {.fd = -fd, .events = POLLIN | POLLOUT},
    };
    show("nothing there", entries, 5, LONG_MS); /* POLLNVAL ends the wait at once */
    show("only negative", entries + 1, 1, 0);
    show("without the closed", entries + 1, 4, 0);
    meet();
    show("data", entries + 1, 4, LONG_MS);
    show("data and closed", entries, 5, 0);
    entries[2].fd = ~entries[2].fd; /* the usual way to leave one out */
    show("left out", entries + 1, 4, 0);
    meet();
    fd_set readable;
    struct timeval now = {0}, wrong = {.tv_usec = -1};
    FD_ZERO(&readable);
    FD_SET(fd, &readable);
    FD_SET(gone, &readable);
    SAY(select((gone > fd ? gone : fd) + 1, &readable, NULL, NULL, &now));
    SAY(select(-1, &readable, NULL, NULL, &now));
    FD_CLR(gone, &readable);
    SAY(select(fd + 1, &readable, NULL, NULL, &wrong));
    SAY(select(fd + 1, &readable, NULL, NULL, &now));
    struct rlimit limit;
    MUST(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = 64;
    MUST(setrlimit(RLIMIT_NOFILE, &limit));
    static struct pollfd many[65];
    for (int i = 0; i < 65; i++)
        many[i] = (struct pollfd){.fd = fd, .events = POLLIN};
    SAY(poll(many, 64, 0));
    for (int i = 0; i < 65; i++)
        many[i].revents = POLLMSG;
    SAY(poll(many, 65, 0)); /* more than the limit */
    SAY(poll(many, 65, LONG_MS));
    SAY(ppoll(many, 65, NULL, NULL));
    int kept = 0;
    for (int i = 0; i < 65; i++)
        kept += many[i].revents == POLLMSG;
    say("entries as before: %d", kept);
    struct timespec odd = {.tv_nsec = 1000000000};
    SAY(ppoll(many, 1, &odd, NULL));
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
