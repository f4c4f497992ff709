// about: a new epoll set for every wait, as libpq inside PostgreSQL has it: upgraded all the same
// upgraded: yes
#include "trial.h"

/* Waits for `fd` in a set that is made for this and closed after it. */
static void await_once(int fd)
{
    int set = (int)MUST(epoll_create1(EPOLL_CLOEXEC));
    struct epoll_event want = {.events = EPOLLIN, .data.fd = fd}, got;
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
    if (MUST(epoll_wait(set, &got, 1, LONG_MS)) != 1 || got.data.fd != fd)
        give_up("no event");
    MUST(close(set));
}

static void echo(int fd, enum role role)
{
    char text[64];
    for (int i = 0; i < 100; i++) {
        memset(text, 'a' + i % 26, sizeof text);
        if (role == CLIENT)
            send_all(fd, text, sizeof text);
        await_once(fd);
        recv_all(fd, text, sizeof text);
        if (role == SERVER)
            send_all(fd, text, sizeof text);
        else if (text[0] != 'a' + i % 26)
            give_up("wrong echo");
    }
    prove(fd, role);
}

static void server(int fd)
{
    echo(fd, SERVER);
}

static void client(int fd)
{
    echo(fd, CLIENT);
}

int main(void)
{
    return run_pair_at("127.0.0.1", "127.0.0.1", true, server, client);
}
