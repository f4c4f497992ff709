// about: the first blocking calls come when no descriptor can be had for a bell: they work, or go by TCP
// upgraded: any
#include "trial.h"
#include <sys/resource.h>

/* Receives without ever waiting in a call. */
static void recv_busily(int fd, char *text, size_t length)
{
    for (size_t had = 0; had < length;) {
        ssize_t got = recv(fd, text + had, length - had, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN))
            give_up("recv");
        if (got > 0)
            had += (size_t)got;
        else
            sched_yield();
    }
}

static void server(int fd)
{
    round_trips(fd, SERVER, 60, 64);
    meet();
    send_all(fd, "first", 5);
    meet();
    send_all(fd, "second", 6);
    round_trips(fd, SERVER, 50, 64);
}

static void client(int fd)
{
    char text[64];
    struct rlimit limit;
    for (int i = 0; i < 60; i++) {
        memset(text, 'C', sizeof text);
        send_all(fd, text, sizeof text);
        recv_busily(fd, text, sizeof text);
    }
    MUST(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = 64;
    SAY(setrlimit(RLIMIT_NOFILE, &limit));
    meet();
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    SAY(poll(&entry, 1, LONG_MS));
    recv_all(fd, text, 5);
    SAY(poll(&entry, 1, SHORT_MS));
    meet();
    SAY(recv(fd, text, 6, MSG_WAITALL));
    round_trips(fd, CLIENT, 50, 64);
}

int main(void)
{
    return run_pair_at("127.0.0.1", "127.0.0.1", true, server, client);
}
