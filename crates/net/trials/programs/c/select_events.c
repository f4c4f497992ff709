// about: select and pselect: three sets, timeouts, time left, a high descriptor, EBADF, a signal mask
// upgraded: yes
// variants: plain fortified
#include "trial.h"

static void asked(const char *what, int fd, int other, int timeout_ms)
{
    fd_set in, out, except;
    FD_ZERO(&in);
    FD_ZERO(&out);
    FD_ZERO(&except);
    FD_SET(fd, &in);
    FD_SET(other, &in);
    FD_SET(fd, &out);
    FD_SET(fd, &except);
    struct timeval wait = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
    int rc = select((fd > other ? fd : other) + 1, &in, &out, &except, &wait);
    say("%s: %d in %d other %d out %d except %d", what, rc, FD_ISSET(fd, &in), FD_ISSET(other, &in),
        FD_ISSET(fd, &out), FD_ISSET(fd, &except));
}

static volatile sig_atomic_t signals;
static void on_signal(int number)
{
    (void)number;
    signals++;
}

static void server(int fd)
{
    meet();
    send_all(fd, "data", 4);
    meet();
    meet();
    MUST(shutdown(fd, SHUT_WR));
    meet();
}

static void client(int fd)
{
    int idle[2];
    char text[8];
    fd_set in;
    MUST(pipe(idle));
    asked("quiet", fd, idle[0], LONG_MS);
    FD_ZERO(&in);
    FD_SET(fd, &in);
    struct timeval wait = {.tv_usec = SHORT_MS * 1000};
    int rc = select(fd + 1, &in, NULL, NULL, &wait);
    say("timeout: %d %d, time left %ld.%06ld", rc, FD_ISSET(fd, &in), (long)wait.tv_sec, (long)wait.tv_usec);
    meet();
    FD_SET(fd, &in);
    rc = select(fd + 1, &in, NULL, NULL, NULL);
    say("blocking: %d %d", rc, FD_ISSET(fd, &in));
    MUST(write(idle[1], "p", 1));
    asked("both", fd, idle[0], LONG_MS);
    int high = (int)MUST(fcntl(fd, F_DUPFD, 1000));
    asked("high", high, idle[0], LONG_MS);
    MUST(close(high));
    FD_ZERO(&in);
    FD_SET(500, &in);
    SAY(select(501, &in, NULL, NULL, NULL));
    SAY(select(-1, NULL, NULL, NULL, NULL));
    recv_all(fd, text, 4);

    struct sigaction action = {.sa_handler = on_signal};
    sigset_t blocked, open;
    sigemptyset(&open);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    MUST(sigaction(SIGUSR2, &action, NULL));
    MUST(sigprocmask(SIG_BLOCK, &blocked, NULL));
    raise(SIGUSR2);
    FD_ZERO(&in);
    FD_SET(fd, &in);
    struct timespec nano = {.tv_sec = LONG_MS / 1000};
    SAY(pselect(fd + 1, &in, NULL, NULL, &nano, &open));
    say("signals %d, timeout kept %ld", (int)signals, (long)nano.tv_sec);
    nano.tv_sec = 0;
    nano.tv_nsec = 1000;
    FD_SET(fd, &in);
    SAY(pselect(fd + 1, &in, NULL, NULL, &nano, NULL));
    meet();
    meet();
    FD_SET(fd, &in);
    SAY(select(fd + 1, &in, NULL, NULL, NULL));
    SAY(recv(fd, text, 1, 0));
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
