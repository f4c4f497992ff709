/* Many open connections, half of them active.
 *
 * crowd listen [HOW [END]]
 *                       prints "port N", echoes on every connection it accepts; waits in
 *                       epoll, poll or recv (a thread for each connection). END is what an epoll
 *                       server does about a peer that takes no echo: close, shutdown or exit
 * crowd connect PORT N  opens N, then obeys stdin: "active K TURNS" makes TURNS round
 *                       trips on each of the first K and prints "done", and the microseconds of
 *                       the slowest one
 *                       ("open N" tells how many could be opened); "wait HOW" waits for
 *                       bytes that do not come until the next command does, or, when
 *                       HOW is recv, for ever. */
#include "trial.h"
#include <sys/resource.h>

static void raise_limit(void)
{
    struct rlimit limit;
    MUST(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = limit.rlim_max;
    MUST(setrlimit(RLIMIT_NOFILE, &limit));
}

/* Echoes what has come; false when the connection is over. */
static bool echo(int fd)
{
    char block[4096];
    ssize_t got = recv(fd, block, sizeof block, 0);
    if (got > 0)
        got = send(fd, block, (size_t)got, MSG_NOSIGNAL) == got ? got : 0;
    return got > 0 || (got < 0 && errno == EAGAIN); /* a full or broken peer is dropped */
}

static void *echo_for_ever(void *fd)
{
    while (echo((int)(intptr_t)fd))
        ;
    MUST(close((int)(intptr_t)fd));
    return NULL;
}

static void serve_by_recv(int listener)
{
    for (;;) {
        pthread_t thread;
        int fd = (int)MUST(accept(listener, NULL, NULL));
        errno = pthread_create(&thread, NULL, echo_for_ever, (void *)(intptr_t)fd);
        if (errno != 0 || (errno = pthread_detach(thread)) != 0)
            give_up("a thread");
    }
}

static void serve_by_poll(int listener)
{
    static struct pollfd all[1024];
    nfds_t used = 1;
    all[0] = (struct pollfd){.fd = listener, .events = POLLIN};
    for (;;) {
        MUST(poll(all, used, -1));
        for (nfds_t i = used - 1; i > 0; i--)
            if (all[i].revents != 0 && !echo(all[i].fd)) {
                MUST(close(all[i].fd));
                all[i] = all[--used];
            }
        if (all[0].revents != 0 && used < 1024)
            all[used++] = (struct pollfd){
                .fd = (int)MUST(accept4(listener, NULL, NULL, SOCK_NONBLOCK)), .events = POLLIN};
    }
}

static void drop(int fd, const char *end)
{
    if (strcmp(end, "exit") == 0)
        exit(0);
    if (strcmp(end, "shutdown") == 0)
        shutdown(fd, SHUT_WR); /* which fails on one that has been reset */
    MUST(close(fd));
}

static void serve_by_epoll(int listener, const char *end)
{
    int set = (int)MUST(epoll_create1(0));
    struct epoll_event want = {.events = EPOLLIN, .data.fd = listener}, events[64];
    MUST(fcntl(listener, F_SETFL, O_RDWR | O_NONBLOCK));
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, listener, &want));
    for (;;) {
        int ready = (int)MUST(epoll_wait(set, events, 64, -1));
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) {
                int one = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
                if (one >= 0) {
                    want.data.fd = one;
                    MUST(epoll_ctl(set, EPOLL_CTL_ADD, one, &want));
                }
                continue;
            }
            if (!echo(fd))
                drop(fd, end);
        }
    }
}

static void serve(const char *how, const char *end)
{
    int listener = listen_at("0.0.0.0");
    printf("port %d\n", port_of(listener));
    fflush(stdout);
    if (strcmp(how, "recv") == 0)
        serve_by_recv(listener);
    else if (strcmp(how, "poll") == 0)
        serve_by_poll(listener);
    else
        serve_by_epoll(listener, end);
}

/* Waits for bytes on all connections, and for the next command. */
static void wait_for_bytes(const char *how, const int *fds, long count)
{
    if (strcmp(how, "recv") == 0) {
        char byte;
        MUST(recv(fds[0], &byte, 1, 0));
        give_up("unasked bytes");
    }
    bool by_poll = strcmp(how, "poll") == 0;
    struct pollfd *all = calloc((size_t)count + 1, sizeof *all);
    int set = (int)MUST(epoll_create1(0));
    for (long i = 0; i <= count; i++) {
        int fd = i == count ? STDIN_FILENO : fds[i];
        struct epoll_event want = {.events = EPOLLIN, .data.fd = fd};
        all[i] = (struct pollfd){.fd = fd, .events = POLLIN};
        if (!by_poll)
            MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
    }
    struct epoll_event event;
    if (by_poll ? MUST(poll(all, (nfds_t)count + 1, -1)) != 1 || all[count].revents == 0
                : MUST(epoll_wait(set, &event, 1, -1)) != 1 || event.data.fd != STDIN_FILENO)
        give_up("unasked bytes");
    MUST(close(set));
    free(all);
}

int main(int argc, char **argv)
{
    char line[64], how[16];
    long count, active, turns;
    MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
    raise_limit();
    if (argc < 2 || (strcmp(argv[1], "connect") == 0 && argc != 4))
        return 2;
    if (strcmp(argv[1], "listen") == 0)
        serve(argc > 2 ? argv[2] : "epoll", argc > 3 ? argv[3] : "close");
    setvbuf(stdin, NULL, _IONBF, 0); /* what has come and is not read yet shows in a poll */
    count = atol(argv[3]);
    int *fds = calloc((size_t)count, sizeof *fds);
    long open_now = 0;
    struct place place = place_of("127.0.0.1", atoi(argv[2]));
    for (; open_now < count; open_now++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (fd < 0)
            break;
        MUST(connect(fd, (struct sockaddr *)&place.addr, place.length));
        fds[open_now] = fd;
    }
    printf("open %ld\n", open_now);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (sscanf(line, "wait %15s", how) == 1) {
            wait_for_bytes(how, fds, open_now);
            continue;
        }
        if (sscanf(line, "active %ld %ld", &active, &turns) != 2)
            return 2;
        uint64_t slowest = 0;
        for (long turn = 0; turn < turns; turn++)
            for (long i = 0; i < active; i++) {
                char text[32], back[32];
                int length = snprintf(text, sizeof text, "%ld of %ld", i, turn);
                uint64_t begin = now_ns();
                send_all(fds[i], text, (size_t)length);
                recv_all(fds[i], back, (size_t)length);
                if (memcmp(text, back, (size_t)length) != 0)
                    give_up("wrong echo");
                uint64_t took = now_ns() - begin;
                slowest = took > slowest ? took : slowest;
            }
        printf("done %llu\n", (unsigned long long)slowest / 1000);
        fflush(stdout);
    }
    return 0;
}
