// about: the first blocking calls come when no descriptor can be had for a bell: they work, or go by TCP
// upgraded: yes
#include "trial.h"
#include <sys/resource.h>

/* A round trip without ever waiting in a call. */
static void ask_busily(int fd, size_t length)
{
    char text[512];
    memset(text, 'C', length);
    send_all(fd, text, length);
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
    prove(fd, SERVER);
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
    for (int i = 0; i < 60; i++)
        ask_busily(fd, 64);
    for (int i = 0; i < 16; i++)
        ask_busily(fd, 512);
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
