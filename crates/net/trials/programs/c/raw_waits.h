/* Waits whose system calls pass no function of libc, or pass libc behind the library's back, for
 * programs that move bytes through libc. */
#ifndef RAW_WAITS_H
#define RAW_WAITS_H
#include "trial.h"
#include <dlfcn.h>

/* DEEP_POLL: in an object whose symbols are bound past the library (RTLD_DEEPBIND).
 * LIBC_RECV: in a receive that waits, for descriptors that block. */
enum way { RAW_PPOLL, RAW_EPOLL, DEEP_POLL, LIBC_CTL, LIBC_POLL, LIBC_EPOLL, LIBC_RECV };

static int raw_set = -1;
/* Descriptors block, and receives say MSG_DONTWAIT. */
static bool raw_hurried;

static int (*deep_poll)(struct pollfd *fds, nfds_t count, int timeout);

SHARED void bind_deeply(void)
{
    void *object = dlopen(getenv("TRIAL_WITNESS"), RTLD_NOW | RTLD_DEEPBIND);
    if (object == NULL || (*(void **)&deep_poll = dlsym(object, "trial_poll")) == NULL)
        give_up("%s", dlerror());
}

/* Must come before the first wait in `way`. */
SHARED void watch(int fd, enum way way)
{
    struct epoll_event event = {.events = EPOLLIN};
    if (way == DEEP_POLL && deep_poll == NULL)
        bind_deeply();
    raw_set = (int)MUST(epoll_create1(0));
    if (way == RAW_EPOLL)
        MUST(witness_call(SYS_epoll_ctl, raw_set, EPOLL_CTL_ADD, fd, (long)&event, 0));
    else if (way == LIBC_CTL || way == LIBC_EPOLL)
        MUST(epoll_ctl(raw_set, EPOLL_CTL_ADD, fd, &event));
    if (!raw_hurried)
        MUST(fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK));
}

SHARED void wait_readable(int fd, enum way way)
{
    char byte;
    struct epoll_event event;
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    switch (way) {
    case RAW_PPOLL:
        MUST(witness_call(SYS_ppoll, (long)&entry, 1, 0, 0, 0));
        break;
    case DEEP_POLL:
        MUST(deep_poll(&entry, 1, -1));
        break;
    case RAW_EPOLL:
    case LIBC_CTL:
        MUST(witness_call(SYS_epoll_pwait, raw_set, (long)&event, 1, -1, 0));
        break;
    case LIBC_POLL:
        MUST(poll(&entry, 1, -1));
        break;
    case LIBC_EPOLL:
        MUST(epoll_wait(raw_set, &event, 1, -1));
        break;
    case LIBC_RECV:
        MUST(recv(fd, &byte, 1, MSG_PEEK));
        break;
    }
}

SHARED void recv_waiting(int fd, void *data, size_t length, enum way way)
{
    char *at = data;
    while (length > 0) {
        ssize_t got = recv(fd, at, length, raw_hurried ? MSG_DONTWAIT : 0);
        if (got < 0 && errno == EAGAIN) {
            wait_readable(fd, way);
            continue;
        }
        if (MUST(got) == 0)
            give_up("the connection ended early");
        at += got;
        length -= (size_t)got;
    }
}

/* Messages small enough never to fill a buffer; each side sends, then waits. */
SHARED void trips_waiting(int fd, enum role role, int count, size_t size, enum way way)
{
    char out[1024], in[1024];
    memset(out, role == SERVER ? 'S' : 'C', sizeof out);
    for (int i = 0; i < count; i++) {
        if (role == CLIENT)
            MUST(send(fd, out, size, 0));
        recv_waiting(fd, in, size, way);
        if (role == SERVER)
            MUST(send(fd, out, size, 0));
        check_trip(role, in, size, i);
    }
}

/* As prove(), waiting in `way`. */
SHARED void prove_waiting(int fd, enum role role, const char *name, enum way way)
{
    long long before = witness_received(fd);
    char out[512], in[512];
    memset(out, role == SERVER ? 'S' : 'C', sizeof out);
    trips_waiting(fd, role, 15, sizeof out, way);
    if (role == CLIENT)
        MUST(send(fd, out, sizeof out, 0));
    recv_waiting(fd, in, sizeof in, way);
    note_proof(name, witness_received(fd) - before);
    if (role == SERVER)
        MUST(send(fd, out, sizeof out, 0));
}

/* All waits of one end of connection number `pair` are in `way`. */
SHARED void trips_in_one_way(int fd, enum role role, int pair, enum way way)
{
    watch(fd, way);
    trips_waiting(fd, role, 200, 64, way);
    prove_waiting(fd, role, role == SERVER ? "server" : "client", way);
    say("%d: done", pair);
    MUST(close(raw_set));
    MUST(close(fd));
}

/* Its waits are in the way `first`, which is not seen, and later in the way `then`, which is. */
SHARED void trips_seen_late(int fd, enum role role, int pair, enum way first, enum way then)
{
    watch(fd, first);
    trips_waiting(fd, role, 200, 64, first);
    say("%d: by TCP %d", pair, witness_received(fd) >= 199 * 64);
    if (then == LIBC_EPOLL && first != LIBC_CTL) {
        struct epoll_event event = {.events = EPOLLIN};
        MUST(epoll_ctl(raw_set, EPOLL_CTL_ADD, fd, &event));
    }
    trips_waiting(fd, role, 2000, 64, then);
    prove_waiting(fd, role, role == SERVER ? "server" : "client", then);
    say("%d: done", pair);
    MUST(close(raw_set));
    MUST(close(fd));
}

/* Both ends of connection number `pair`. */
typedef void pair_body(int fd, enum role role, int pair);

static pair_body *raw_body;
static int raw_pairs;

SHARED void serve_pairs(int fd)
{
    (void)fd;
    int listener = open_door();
    for (int pair = 0; pair < raw_pairs; pair++)
        raw_body(accept_at(listener), SERVER, pair);
}

SHARED void visit_pairs(int fd)
{
    (void)fd;
    int port = find_door();
    for (int pair = 0; pair < raw_pairs; pair++)
        raw_body(connect_at("127.0.0.1", port), CLIENT, pair);
}

/* Runs `body` at both ends of `pairs` connections, one after the other; main()'s result. */
SHARED int run_pairs(pair_body *body, int pairs)
{
    raw_body = body;
    raw_pairs = pairs;
    return run_pair_at("127.0.0.1", "127.0.0.1", true, serve_pairs, visit_pairs);
}
#endif
