/* Waits whose system calls pass no function of libc, for programs that move bytes through libc. */
#ifndef RAW_WAITS_H
#define RAW_WAITS_H
#include "trial.h"

enum way { RAW_PPOLL, RAW_EPOLL, LIBC_CTL, LIBC_POLL, LIBC_EPOLL };

static int raw_set = -1;

/* Must come before the first wait in `way`. */
SHARED void watch(int fd, enum way way)
{
    struct epoll_event event = {.events = EPOLLIN};
    MUST(fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK));
    raw_set = (int)MUST(epoll_create1(0));
    if (way == RAW_EPOLL)
        MUST(witness_call(SYS_epoll_ctl, raw_set, EPOLL_CTL_ADD, fd, (long)&event, 0));
    else if (way == LIBC_CTL || way == LIBC_EPOLL)
        MUST(epoll_ctl(raw_set, EPOLL_CTL_ADD, fd, &event));
}

SHARED void wait_readable(int fd, enum way way)
{
    struct epoll_event event;
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    switch (way) {
    case RAW_PPOLL:
        MUST(witness_call(SYS_ppoll, (long)&entry, 1, 0, 0, 0));
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
    }
}

SHARED void recv_waiting(int fd, void *data, size_t length, enum way way)
{
    char *at = data;
    while (length > 0) {
        ssize_t got = recv(fd, at, length, 0);
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
