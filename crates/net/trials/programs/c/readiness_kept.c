// about: sets and poll made before the first byte keep working across the upgrade that happens under them
// upgraded: yes
#include "trial.h"

/* Every byte is waited for in the same two sets, from the first message on. */
static void server(int fd)
{
    char text[64];
    int level = (int)MUST(epoll_create1(0)), edge = (int)MUST(epoll_create1(0)), edges = 0, levels = 0;
    struct epoll_event want = {.events = EPOLLIN}, seen;
    MUST(epoll_ctl(level, EPOLL_CTL_ADD, fd, &want));
    want.events = EPOLLIN | EPOLLET;
    MUST(epoll_ctl(edge, EPOLL_CTL_ADD, fd, &want));
    MUST(fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK));
    for (int i = 0; i < 200; i++) {
        levels += epoll_wait(level, &seen, 1, LONG_MS) == 1;
        edges += epoll_wait(edge, &seen, 1, LONG_MS) == 1;
        size_t have = 0;
        for (;;) { /* to EAGAIN, as edges demand; a message may come in two parts */
            ssize_t got = recv(fd, text + have, sizeof text - have, 0);
            if (got > 0)
                have += (size_t)got;
            else if (have == 16)
                break;
            else
                await_event(fd, POLLIN);
        }
        while (epoll_wait(edge, &seen, 1, 0) == 1)
            ; /* an edge of the second part */
        send_all(fd, text, 16);
    }
    say("levels %d edges %d", levels, edges);
    MUST(fcntl(fd, F_SETFL, O_RDWR));
    prove(fd, SERVER);
}

static void client(int fd)
{
    char text[64];
    int right = 0;
    for (int i = 0; i < 200; i++) {
        fd_set in;
        FD_ZERO(&in);
        FD_SET(fd, &in);
        send_all(fd, "sixteen bytes...", 16);
        right += i % 2 ? select(fd + 1, &in, NULL, NULL, NULL) == 1
                       : poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, LONG_MS) == 1;
        recv_all(fd, text, 16);
    }
    say("right %d", right);
    prove(fd, CLIENT);
}

int main(void)
{
    return run_pair_at("127.0.0.1", "127.0.0.1", true, server, client);
}
