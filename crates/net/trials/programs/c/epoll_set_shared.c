// about: a set shared over fork: pipes that the child adds, changes and removes there, and the parent's connection beside them
// upgraded: any
#include "trial.h"

static void seen(const char *what, int set, int timeout)
{
    struct epoll_event got = {0};
    int rc = (int)MUST(epoll_wait(set, &got, 1, timeout));
    say("%s: %d %#x %u", what, rc, rc > 0 ? got.events : 0, rc > 0 ? got.data.u32 : 0);
}

static void server(int fd)
{
    meet();
    send_all(fd, "data", 4);
    meet();
    meet();
}

static void in_child(int set, void (*act)(int, int), int fd)
{
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        act(set, fd);
        _exit(0);
    }
    MUST(waitpid(child, NULL, 0));
}

static void add(int set, int fd)
{
    struct epoll_event want = {.events = EPOLLIN, .data.u32 = 7};
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
}

static void change(int set, int fd)
{
    struct epoll_event want = {.events = EPOLLOUT, .data.u32 = 8};
    SAY(epoll_ctl(set, EPOLL_CTL_MOD, fd, &want));
}

static void removed(int set, int fd)
{
    SAY(epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL));
}

static void client(int fd)
{
    int set = (int)MUST(epoll_create1(0)), tube[2];
    MUST(pipe(tube));
    in_child(set, add, tube[0]);
    seen("a pipe, quiet", set, 0);
    MUST(write(tube[1], "x", 1));
    seen("a pipe", set, LONG_MS);
    in_child(set, removed, tube[0]);
    seen("removed", set, 0);
    meet();
    await_bytes(fd, 4);
    struct epoll_event want = {.events = EPOLLIN, .data.u32 = 9};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
    seen("a connection", set, LONG_MS);
    in_child(set, add, tube[0]);
    in_child(set, change, tube[1]);
    in_child(set, removed, tube[0]);
    seen("the connection still", set, LONG_MS);
    meet();
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
