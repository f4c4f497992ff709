// about: processes that share a listener by EPOLLEXCLUSIVE in a set of their own each, as nginx has it: all connections are accepted and served
// upgraded: yes
#include "trial.h"

enum { WORKERS = 3, CONNECTIONS = 15 };

/* Serves until it is told to stop; each connection says 'q' at its end. */
static void work(int listener, int stop)
{
    struct epoll_event want = {.events = EPOLLIN | EPOLLEXCLUSIVE, .data.fd = listener}, got[8];
    int set = (int)MUST(epoll_create1(0));
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, listener, &want));
    want = (struct epoll_event){.events = EPOLLIN, .data.fd = stop};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, stop, &want));
    for (;;) {
        int count = (int)MUST(epoll_wait(set, got, 8, LONG_MS));
        for (int i = 0; i < count; i++) {
            int fd = got[i].data.fd;
            if (fd == stop)
                _exit(0);
            if (fd == listener) {
                fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
                if (fd < 0)
                    continue; /* another one was quicker */
                want = (struct epoll_event){.events = EPOLLIN, .data.fd = fd};
                MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
                MUST(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)));
                continue;
            }
            char text[512];
            ssize_t size = recv(fd, text, sizeof text, 0);
            if (size > 0)
                send_all(fd, text, (size_t)size);
            else if (size == 0 || errno != EAGAIN)
                MUST(close(fd));
        }
    }
}

static void server(int fd)
{
    int listener = open_door(), stop[2], bad = 0, status;
    MUST(pipe(stop));
    MUST(fcntl(listener, F_SETFL, O_RDWR | O_NONBLOCK));
    for (int i = 0; i < WORKERS; i++)
        if (MUST(fork()) == 0) {
            MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
            MUST(close(stop[1]));
            MUST(close(fd));
            work(listener, stop[0]);
        }
    meet();
    MUST(close(stop[1]));
    for (int i = 0; i < WORKERS; i++) {
        MUST(wait(&status));
        bad += status != 0;
    }
    say("bad workers %d", bad);
    round_trips(fd, SERVER, 20, 64);
}

static void client(int fd)
{
    int port = find_door(), fds[CONNECTIONS], wrong = 0;
    char text[64], back[64];
    for (int i = 0; i < CONNECTIONS; i++)
        fds[i] = connect_at("127.0.0.1", port);
    for (int turn = 0; turn < 60; turn++)
        for (int i = 0; i < CONNECTIONS; i++) {
            memset(text, turn + i, sizeof text);
            send_all(fds[i], text, sizeof text);
            recv_all(fds[i], back, sizeof back);
            wrong += memcmp(text, back, sizeof text) != 0;
        }
    say("wrong %d", wrong);
    for (int i = 0; i < CONNECTIONS; i++) {
        MUST(shutdown(fds[i], SHUT_WR));
        wrong = (int)recv(fds[i], text, 1, 0);
        if (wrong != 0)
            say("no end of %d", i);
        MUST(close(fds[i]));
    }
    meet();
    round_trips(fd, CLIENT, 20, 64);
}

int main(void)
{
    return run_pair(server, client);
}
