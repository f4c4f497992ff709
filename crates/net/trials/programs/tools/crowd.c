/* Many open connections, half of them active.
 *
 * crowd listen          prints "port N", echoes on every connection it accepts
 * crowd connect PORT N  opens N, then obeys stdin: "active K TURNS" makes TURNS round
 *                       trips on each of the first K and prints "done"
 *                       ("open N" tells how many could be opened). */
#include "trial.h"
#include <sys/resource.h>

static void raise_limit(void)
{
    struct rlimit limit;
    MUST(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = limit.rlim_max;
    MUST(setrlimit(RLIMIT_NOFILE, &limit));
}

static void serve(void)
{
    static char block[4096];
    int listener = listen_at("0.0.0.0"), set = (int)MUST(epoll_create1(0));
    struct epoll_event want = {.events = EPOLLIN, .data.fd = listener}, events[64];
    printf("port %d\n", port_of(listener));
    fflush(stdout);
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
            ssize_t got = recv(fd, block, sizeof block, 0);
            if (got > 0)
                got = send(fd, block, (size_t)got, MSG_NOSIGNAL) == got ? got : 0;
            if (got == 0 || (got < 0 && errno != EAGAIN)) /* a full or broken peer is dropped */
                MUST(close(fd));
        }
    }
}

int main(int argc, char **argv)
{
    char line[64];
    long count, active, turns;
    MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
    raise_limit();
    if (argc < 4)
        serve();
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
        if (sscanf(line, "active %ld %ld", &active, &turns) != 2)
            return 2;
        for (long turn = 0; turn < turns; turn++)
            for (long i = 0; i < active; i++) {
                char text[32], back[32];
                int length = snprintf(text, sizeof text, "%ld of %ld", i, turn);
                send_all(fds[i], text, (size_t)length);
                recv_all(fds[i], back, (size_t)length);
                if (memcmp(text, back, (size_t)length) != 0)
                    give_up("wrong echo");
            }
        printf("done\n");
        fflush(stdout);
    }
    return 0;
}
