// about: every way to wait, by number and by its further name in libc, on an upgraded connection
// upgraded: yes
#include "trial.h"

extern int __poll(struct pollfd *, nfds_t, int);
extern int __select(int, fd_set *, fd_set *, fd_set *, struct timeval *);

static int set;

static int polled(int fd, int way, int timeout_ms)
{
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    struct timespec wait = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L};
    if (way == 0)
        return __poll(&entry, 1, timeout_ms);
#ifdef SYS_poll
    if (way == 1)
        return (int)syscall(SYS_poll, &entry, 1, timeout_ms);
#endif
    return (int)syscall(SYS_ppoll, &entry, 1, &wait, NULL, 8);
}

static int selected(int fd, int way, int timeout_ms)
{
    fd_set in;
    FD_ZERO(&in);
    FD_SET(fd, &in);
    struct timeval wait = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
    struct timespec nano = {.tv_sec = wait.tv_sec, .tv_nsec = wait.tv_usec * 1000L};
    sigset_t none;
    sigemptyset(&none);
    struct {
        const sigset_t *mask;
        size_t bytes;
    } mask = {&none, 8};
    int rc;
    if (way == 0)
        rc = __select(fd + 1, &in, NULL, NULL, &wait);
#ifdef SYS_select
    else if (way == 1)
        rc = (int)syscall(SYS_select, fd + 1, &in, NULL, NULL, &wait);
#endif
    else
        rc = (int)syscall(SYS_pselect6, fd + 1, &in, NULL, NULL, &nano, way == 2 ? &mask : NULL);
    return rc < 0 ? rc : 10 * rc + FD_ISSET(fd, &in);
}

static int waited(int way, int timeout_ms)
{
    struct epoll_event event = {0};
    struct timespec wait = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L};
    sigset_t none;
    sigemptyset(&none);
    int rc;
#ifdef SYS_epoll_wait
    if (way == 0)
        rc = (int)syscall(SYS_epoll_wait, set, &event, 1, timeout_ms);
    else
#endif
        if (way < 2)
        rc = (int)syscall(SYS_epoll_pwait, set, &event, 1, timeout_ms, &none, 8);
    else
        rc = (int)syscall(SYS_epoll_pwait2, set, &event, 1, &wait, &none, 8);
    return rc < 0 ? rc : 10 * rc + (event.data.fd == 77);
}

static void server(int fd)
{
    char text[4];
    for (int i = 0; i < 10; i++) {
        recv_all(fd, text, 1);
        poll(NULL, 0, SHORT_MS); /* lets the other side go to sleep */
        send_all(fd, "news", 4);
    }
    recv_all(fd, text, 1);
    send_all(fd, "news", 4);
    prove(fd, SERVER);
}

static void client(int fd)
{
    char text[8] = {0};
    struct epoll_event event = {.events = EPOLLIN, .data.fd = 77};
    set = (int)MUST(epoll_create1(0));
    MUST(syscall(SYS_epoll_ctl, set, EPOLL_CTL_ADD, fd, &event));
    for (int i = 0; i < 10; i++) {
        say("%d: nothing %d", i, i < 3 ? polled(fd, i, 0) : i < 7 ? selected(fd, i - 3, 0) : waited(i - 7, 0));
        send_all(fd, "?", 1);
        say("%d: %d", i, i < 3 ? polled(fd, i, LONG_MS) : i < 7 ? selected(fd, i - 3, LONG_MS) : waited(i - 7, LONG_MS));
        recv_all(fd, text, 4);
    }
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    struct timespec wrong = {.tv_nsec = 2000000000};
    sigset_t none;
    sigemptyset(&none);
    SAY(syscall(SYS_ppoll, &entry, 1, NULL, &none, 4));
    SAY(syscall(SYS_ppoll, &entry, 1, &wrong, NULL, 8));
    SAY(syscall(SYS_epoll_pwait, set, &event, 1, 0, &none, 4));
    SAY(syscall(SYS_epoll_pwait, set, &event, 0, 0, NULL, 8));
    MUST(close(set));
    set = (int)MUST(syscall(SYS_epoll_create1, 0));
    MUST(syscall(SYS_epoll_ctl, set, EPOLL_CTL_ADD, fd, &event));
    SAY(waited(0, 0));
    send_all(fd, "!", 1);
    SAY(waited(0, LONG_MS));
    recv_all(fd, text, 4);
    prove(fd, CLIENT);
}

int main(void)
{
    return run_pair(server, client);
}
