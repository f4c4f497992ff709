// about: an object that is loaded with RTLD_DEEPBIND waits on a connection that was upgraded before
// upgraded: yes
#include "raw_waits.h"

static void server(int fd)
{
    round_trips(fd, SERVER, 10, 64);
    meet();
    send_all(fd, "late", 4);
    round_trips(fd, SERVER, 200, 64);
}

static void client(int fd)
{
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    char text[8] = {0};
    round_trips(fd, CLIENT, 10, 64);
    bind_deeply();
    meet();
    SAY(deep_poll(&entry, 1, LONG_MS));
    recv_all(fd, text, 4);
    say("%s", text);
    round_trips(fd, CLIENT, 200, 64);
}

int main(void)
{
    return run_pair(server, client);
}
