// about: after a thread was cancelled in a wait, or jumped out of it, close reaches the peer
// upgraded: yes
#include "jumps.h"

enum { RECV, READ, POLL, SELECT, EPOLL, MANY, WAYS };
static int line, way, set;

static void block(void)
{
    char text[8];
    struct pollfd entry = {.fd = line, .events = POLLIN}, many[100];
    struct epoll_event event;
    fd_set in;
    FD_ZERO(&in);
    FD_SET(line, &in);
    for (int i = 0; i < 100; i++)
        many[i] = entry;
    switch (way) {
    case RECV: recv(line, text, 8, 0); break;
    case READ: read(line, text, 8); break;
    case POLL: poll(&entry, 1, -1); break;
    case SELECT: select(line + 1, &in, NULL, NULL, NULL); break;
    case EPOLL: epoll_wait(set, &event, 1, -1); break;
    default: poll(many, 100, -1); break;
    }
    say("not reached");
}

static void watch(int fd)
{
    struct epoll_event want = {.events = EPOLLIN};
    line = fd;
    set = (int)MUST(epoll_create1(0));
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
}

/* Closed by another thread than the cancelled one. */
static void cancelled(int fd)
{
    struct sleeper sleeper;
    watch(fd);
    start_sleeper(&sleeper, block);
    MUST(-pthread_cancel(sleeper.thread));
    say("way %d cancelled %d", way, join_sleeper(&sleeper));
    MUST(close(fd));
    MUST(close(set));
}

/* Closed while the thread still sleeps, which does not wake it: the connection ends when it does. */
static void cancelled_late(int fd)
{
    struct sleeper sleeper;
    watch(fd);
    start_sleeper(&sleeper, block);
    MUST(close(fd));
    MUST(close(set));
    await_asleep(sleeper.tid);
    MUST(-pthread_cancel(sleeper.thread));
    say("way %d cancelled %d", way, join_sleeper(&sleeper));
}

/* Closed by the thread that has jumped. */
static void jumped(int fd)
{
    watch(fd);
    jump_out_of(block);
    say("way %d jumped", way);
    MUST(close(fd));
    MUST(close(set));
}

static void server(int fd)
{
    char byte;
    int door = open_door();
    meet();
    say("end %zd", recv(fd, &byte, 1, 0));
    for (int i = 0; i < 3 * WAYS; i++) {
        fd = warm_server(door);
        meet();
        say("%d: end %zd", i, recv(fd, &byte, 1, 0));
        meet();
        MUST(close(fd));
    }
}

static void client(int fd)
{
    int port = find_door();
    MUST(close(fd));
    meet();
    void (*const all[])(int) = {cancelled, cancelled_late, jumped};
    for (int i = 0; i < 3; i++)
        for (way = 0; way < WAYS; way++) {
            all[i](warm_client(port));
            meet();
            meet();
        }
}

int main(void)
{
    return run_pair(server, client);
}
