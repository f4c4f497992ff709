// about: a peer killed behind our closed window: a blocked send, poll and epoll report its end
// upgraded: any, bytes go by TCP before the proof could be made
#include "children.h"

enum { WAYS = 3, ROUNDS = 40, FLOOD = 64 << 10 };
static int line;
static char block[8 << 20];

static void sending(void)
{
    ssize_t sent = send(line, block, sizeof block, MSG_NOSIGNAL);
    say("a part, or the reset: %d", sent > 0 || (sent == -1 && errno == ECONNRESET));
}

static void polling(void)
{
    struct pollfd entry = {.fd = line, .events = POLLOUT};
    while (send(line, block, 4096, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
        ;
    say("%s", strerrorname_np(errno));
    SAY(poll(&entry, 1, LONG_MS));
    say("err %d hup %d", (entry.revents & POLLERR) != 0, (entry.revents & POLLHUP) != 0);
}

static void watching(void)
{
    int set = (int)MUST(epoll_create1(0));
    struct epoll_event event = {.events = EPOLLOUT | EPOLLET};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, line, &event));
    MUST(epoll_wait(set, &event, 1, LONG_MS));
    while (send(line, block, 4096, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
        ;
    say("%s", strerrorname_np(errno));
    while (SAY(epoll_wait(set, &event, 1, LONG_MS)) == 1 && (event.events & EPOLLERR) == 0)
        ;
    say("err %d hup %d", (event.events & EPOLLERR) != 0, (event.events & EPOLLHUP) != 0);
    MUST(close(set));
}

static void survive(int way)
{
    void (*const ways[WAYS])(void) = {sending, polling, watching};
    struct pollfd entry = {.fd = line, .events = POLLIN | POLLOUT | POLLRDHUP};
    struct sleeper sleeper;
    char byte;
    start_sleeper(&sleeper, ways[way]);
    meet(); /* now it is killed */
    join_sleeper(&sleeper);
    SAY(poll(&entry, 1, 0));
    short events = entry.revents;
    say("in %d out %d err or told %d hup %d rdhup %d", (events & POLLIN) != 0,
        (events & POLLOUT) != 0, (events & POLLERR) != 0 || way == 0, (events & POLLHUP) != 0,
        (events & POLLRDHUP) != 0);
    MUST(recv(line, &byte, 1, 0));
    say("%c", byte);
    ssize_t rc = send(line, "x", 1, MSG_NOSIGNAL);
    say("the reset, or its echo: %d",
        rc == -1 && (errno == ECONNRESET || (way == 0 && errno == EPIPE)));
    SAY(send(line, "x", 1, MSG_NOSIGNAL));
}

static void server(int first)
{
    int small = 4096, listener = open_door();
    MUST(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof small));
    meet();
    for (int way = 0; way < WAYS; way++) {
        line = accept_at(listener);
        for (int i = 0; i < ROUNDS; i++) {
            send_all(line, "s", 1);
            meet();
        }
        say("way %d", way);
        survive(way);
        meet();
        MUST(close(line));
    }
    round_trips(first, SERVER, 20, 64);
}

static void flood(int way, int port)
{
    char byte;
    (void)way;
    int fd = connect_at("127.0.0.1", port);
    memset(block, 'c', FLOOD);
    for (int i = 0; i < ROUNDS; i++) {
        send(fd, block, FLOOD, MSG_DONTWAIT | MSG_NOSIGNAL);
        recv_all(fd, &byte, 1);
        meet();
    }
    child_is_ready();
}

static void client(int first)
{
    int port = find_door();
    meet();
    kill_children(first, flood, WAYS, port);
    round_trips(first, CLIENT, 20, 64);
}

int main(void)
{
    return run_pair(server, client);
}
