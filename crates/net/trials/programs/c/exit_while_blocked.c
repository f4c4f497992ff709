// about: exit, _exit and a fatal signal while other threads sleep in recv, poll, epoll_wait and send on connections: what each peer sees
// upgraded: yes
#include "trial.h"

enum { WAYS = 3 };
static int line, set, full;

static void in_recv(void)
{
    char byte;
    recv(line, &byte, 1, 0);
    say("not reached");
}

static void in_poll(void)
{
    struct pollfd entry = {.fd = line, .events = POLLIN};
    poll(&entry, 1, -1);
    say("not reached");
}

static void in_epoll(void)
{
    struct epoll_event event;
    epoll_wait(set, &event, 1, -1);
    say("not reached");
}

static void in_send(void)
{
    static char block[1 << 20];
    while (send(full, block, sizeof block, MSG_NOSIGNAL) > 0)
        ;
    say("not reached");
}

static void end(int way, int port)
{
    struct sleeper sleepers[4];
    struct epoll_event want = {.events = EPOLLIN};
    MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
    line = warm_client(port);
    full = warm_client(port);
    set = (int)MUST(epoll_create1(0));
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, line, &want));
    start_sleeper(&sleepers[0], in_recv);
    start_sleeper(&sleepers[1], in_poll);
    start_sleeper(&sleepers[2], in_epoll);
    start_sleeper(&sleepers[3], in_send);
    send_all(line, "last words", 10);
    if (way == 0)
        exit(4);
    if (way == 1)
        _exit(5);
    kill(getpid(), SIGTERM);
    pause();
}

static void server(int fd)
{
    static char block[1 << 20];
    int listener = open_door();
    char text[16] = {0};
    for (int way = 0; way < WAYS; way++) {
        int other = warm_server(listener), flooded = warm_server(listener);
        recv_all(other, text, 10);
        say("%s, end %zd", text, recv(other, text, 1, 0));
        uint64_t total = 0;
        ssize_t got;
        while ((got = recv(flooded, block, sizeof block, 0)) > 0)
            total += (uint64_t)got;
        say("flood, then %zd, some of it %d", got, total > 0);
        MUST(close(other));
        MUST(close(flooded));
    }
    round_trips(fd, SERVER, 20, 64);
}

static void client(int fd)
{
    int port = find_door(), status;
    for (int way = 0; way < WAYS; way++) {
        pid_t child = (pid_t)MUST(fork());
        if (child == 0) {
            MUST(close(fd));
            end(way, port);
        }
        MUST(waitpid(child, &status, 0));
        say("way %d: %#x", way, status);
    }
    round_trips(fd, CLIENT, 20, 64);
}

int main(void)
{
    return run_pair(server, client);
}
