// about: a peer killed with bytes unread: its last words, one error, then the end
// upgraded: yes
#include "children.h"

enum { WAYS = 6 };
static int line;

static void bits(const char *name, unsigned events)
{
    say("%s:%s%s%s%s%s", name, events & POLLIN ? " IN" : "", events & POLLOUT ? " OUT" : "",
        events & POLLERR ? " ERR" : "", events & POLLHUP ? " HUP" : "",
        events & POLLRDHUP ? " RDHUP" : "");
}

static void polled(const char *name)
{
    struct pollfd entry = {.fd = line, .events = POLLIN | POLLOUT | POLLRDHUP};
    SAY(poll(&entry, 1, 0));
    bits(name, (unsigned)entry.revents);
}

/* The survivor waits in way `way`; says what it learns first. */
static void notice(int way)
{
    struct pollfd end = {.fd = line, .events = POLLRDHUP};
    unsigned events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | (way == 2 ? EPOLLET : 0u);
    struct epoll_event event = {.events = events};
    int error = 0, set;
    socklen_t length = sizeof error;
    switch (way) {
    case 0:
        MUST(poll(&end, 1, LONG_MS));
        bits("poll for the end", (unsigned)end.revents);
        break;
    case 1:
    case 2:
        set = (int)MUST(epoll_create1(0));
        MUST(epoll_ctl(set, EPOLL_CTL_ADD, line, &event));
        do
            MUST(epoll_wait(set, &event, 1, LONG_MS));
        while ((event.events & EPOLLRDHUP) == 0);
        bits("epoll", event.events);
        MUST(close(set));
        break;
    case 3:
        await_event(line, POLLRDHUP);
        SAY(send(line, "x", 1, MSG_NOSIGNAL));
        break;
    case 4:
        await_event(line, POLLRDHUP);
        MUST(getsockopt(line, SOL_SOCKET, SO_ERROR, &error, &length));
        say("error %s", strerrorname_np(error));
        break;
    default:
        break; /* recv is the first to know */
    }
}

static void survive(int way)
{
    char words[64];
    ssize_t got;
    notice(way);
    if (way != 5)
        polled("then");
    while ((got = recv(line, words, sizeof words, 0)) > 0)
        say("last words: %.*s", (int)got, words);
    say("recv %zd %s", got, got < 0 ? strerrorname_np(errno) : "");
    SAY(recv(line, words, 1, 0));
    polled("at last");
    SAY(send(line, "x", 1, MSG_NOSIGNAL));
    SAY(recv(line, words, 1, 0));
    MUST(close(line));
}

static void server(int first)
{
    int listener = open_door();
    for (int way = 0; way < WAYS; way++) {
        line = warm_server(listener);
        send_all(line, "unread", 6);
        meet();
        meet(); /* the peer has been killed */
        say("way %d", way);
        survive(way);
    }
    round_trips(first, SERVER, 20, 64);
}

static void live(int way, int port)
{
    (void)way;
    int fd = warm_client(port);
    send_all(fd, "good-bye", 8);
    await_bytes(fd, 6);
    child_is_ready();
}

static void client(int first)
{
    kill_children(first, live, WAYS, find_door());
    round_trips(first, CLIENT, 20, 64);
}

int main(void)
{
    return run_pair(server, client);
}
