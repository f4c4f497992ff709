/* A client of redis-server with many connections.
 *
 * pool PORT      prints "up", then obeys stdin:
 *   open N       opens N connections to 127.0.0.1, says "open" and how many it has
 *   ask TURNS    asks each of them TURNS times for a text of its own, a hundred at a time,
 *                and says "done" when every answer was right
 *   rest         waits for bytes that do not come until the next command does */
#include "trial.h"
#include <sys/resource.h>

#define MOST 60000
#define BATCH 100

static int fds[MOST];
static long held;

static void raise_limit(void)
{
    struct rlimit limit;
    MUST(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = limit.rlim_max;
    MUST(setrlimit(RLIMIT_NOFILE, &limit));
}

static void open_more(int port, long count)
{
    struct place place = place_of("127.0.0.1", port);
    while (count-- > 0 && held < MOST) {
        int one = 1, fd = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
        MUST(connect(fd, (struct sockaddr *)&place.addr, place.length));
        MUST(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one));
        fds[held++] = fd;
    }
}

/* One question on each of a batch, then all answers. */
static void ask_batch(long first, long end, long turn)
{
    char text[48], question[96], wanted[96], answer[96];
    for (int answering = 0; answering < 2; answering++)
        for (long i = first; i < end; i++) {
            int length = snprintf(text, sizeof text, "%ld-of-%d-in-%ld", i, getpid(), turn);
            if (answering) {
                int bytes = snprintf(wanted, sizeof wanted, "$%d\r\n%s\r\n", length, text);
                recv_all(fds[i], answer, (size_t)bytes);
                if (memcmp(wanted, answer, (size_t)bytes) != 0)
                    give_up("wrong answer on connection %ld", i);
            } else {
                int bytes = snprintf(question, sizeof question, "ECHO %s\r\n", text);
                send_all(fds[i], question, (size_t)bytes);
            }
        }
}

static void ask(long turns)
{
    for (long first = 0; first < held; first += BATCH)
        for (long turn = 0; turn < turns; turn++)
            ask_batch(first, first + BATCH < held ? first + BATCH : held, turn);
}

static void rest(void)
{
    int set = (int)MUST(epoll_create1(0));
    for (long i = 0; i <= held; i++) {
        int fd = i == held ? STDIN_FILENO : fds[i];
        struct epoll_event want = {.events = EPOLLIN, .data.fd = fd};
        MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
    }
    struct epoll_event event;
    if (MUST(epoll_wait(set, &event, 1, -1)) != 1 || event.data.fd != STDIN_FILENO)
        give_up("unasked bytes");
    MUST(close(set));
}

int main(int argc, char **argv)
{
    char line[64];
    long number;
    MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
    raise_limit();
    if (argc != 2)
        return 2;
    setvbuf(stdin, NULL, _IONBF, 0); /* what has come and is not read yet shows in epoll */
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("up\n");
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (sscanf(line, "open %ld", &number) == 1) {
            open_more(atoi(argv[1]), number);
            printf("open %ld\n", held);
        } else if (sscanf(line, "ask %ld", &number) == 1) {
            ask(number);
            printf("done\n");
        } else if (strcmp(line, "rest\n") == 0) {
            rest();
        } else {
            return 2;
        }
    }
    return 0;
}
