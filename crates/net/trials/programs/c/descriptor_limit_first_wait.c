// about: the first blocking calls, without a descriptor for a bell, work or go by TCP
// upgraded: yes
#include "trial.h"
#include <sys/resource.h>

static void server(int fd)
{
    warm_up(fd, SERVER);
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
    warm_up_busily(fd);
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
