/* The side that lives on while its peers are killed.
 *
 * Commands on stdin, one per line:
 *   accept WAY        accepts one connection on its listener and serves it
 *   connect PORT WAY  connects and serves
 *   cycles N PORT     N times connect, 0-8 round trips, close
 *   serve N           accepts N connections, one after the other, echoing until EOF
 * Serving: echoes until the peer is gone, by WAY: recv, poll, epoll, full (sends
 * until everything is full and sleeps in send). Prints "port N" at the start and
 * "end HOW" per command, HOW being what TCP would show: EOF, ECONNRESET, EPIPE. */
#include "trial.h"

static char block[65536];

static const char *echo_once(int fd)
{
    ssize_t got = recv(fd, block, sizeof block, 0);
    if (got == 0)
        return "EOF";
    if (got < 0)
        return strerrorname_np(errno);
    for (ssize_t at = 0; at < got;) {
        ssize_t sent = send(fd, block + at, (size_t)(got - at), MSG_NOSIGNAL);
        if (sent < 0)
            return strerrorname_np(errno);
        at += sent;
    }
    return NULL;
}

static const char *serve(int fd, const char *way)
{
    const char *end = NULL;
    struct epoll_event event = {.events = EPOLLIN};
    int set = (int)MUST(epoll_create1(0));
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    for (int turn = 0; end == NULL; turn++) {
        if (strcmp(way, "poll") == 0)
            await_event(fd, POLLIN);
        else if (strcmp(way, "epoll") == 0 && epoll_wait(set, &event, 1, LONG_MS) != 1)
            end = "TIMEOUT";
        else if (strcmp(way, "full") == 0 && turn > 20 && send(fd, block, sizeof block, MSG_NOSIGNAL) < 0)
            end = strerrorname_np(errno);
        else if (strcmp(way, "full") != 0 || turn <= 20)
            end = echo_once(fd);
        if (end == NULL && (strcmp(way, "poll") == 0))
            end = echo_once(fd);
    }
    MUST(close(set));
    MUST(close(fd));
    return end;
}

static void cycles(long count, int port, unsigned seed)
{
    for (long i = 0; i < count; i++) {
        int fd = connect_at("127.0.0.1", port);
        seed = seed * 1103515245 + 12345;
        for (unsigned turn = seed >> 16 & 15; turn > 7; turn--) {
            char text[16], back[16]; /* one connection's bytes never show up in another */
            int length = snprintf(text, sizeof text, "%ld-%u", i, turn);
            send_all(fd, text, (size_t)length);
            recv_all(fd, back, (size_t)length);
            if (memcmp(text, back, (size_t)length) != 0)
                give_up("a wrong echo");
        }
        MUST(close(fd));
    }
}

int main(void)
{
    char line[128], way[32];
    int port, listener = listen_at("127.0.0.1");
    long count;
    MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
    printf("port %d\n", port_of(listener));
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        const char *end = "done";
        if (sscanf(line, "accept %31s", way) == 1)
            end = serve(accept_at(listener), way);
        else if (sscanf(line, "connect %d %31s", &port, way) == 2)
            end = serve(connect_at("127.0.0.1", port), way);
        else if (sscanf(line, "cycles %ld %d", &count, &port) == 2)
            cycles(count, port, (unsigned)count);
        else if (sscanf(line, "serve %ld", &count) == 1)
            for (long i = 0; i < count; i++)
                serve(accept_at(listener), "recv");
        else
            end = "what?";
        printf("end %s\n", end);
        fflush(stdout);
    }
    return 0;
}
