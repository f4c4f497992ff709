// about: EINTR and SA_RESTART in blocking recv, send, poll, select, epoll_wait; SO_RCVTIMEO never restarts
// upgraded: yes
#include "trial.h"
#include <sys/time.h>

static volatile sig_atomic_t alarms;
static int signalling; /* a pipe that the handler fills, so the peer acts after it */
static void on_alarm(int number)
{
    (void)number;
    alarms++;
    if (signalling)
        (void)!write(trial_meet[1], "m", 1);
}

/* Repeats, so a signal that arrives before the call blocks is not the last one. */
static void arm(int flags)
{
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = flags};
    MUST(sigaction(SIGALRM, &action, NULL));
    struct itimerval often = {.it_value = {.tv_usec = 20000}, .it_interval = {.tv_usec = 20000}};
    MUST(setitimer(ITIMER_REAL, &often, NULL));
}

static void disarm(void)
{
    MUST(setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL));
}

#define INTERRUPTED(flags, call)      \
    do {                              \
        arm(flags);                   \
        long rc_ = (errno = 0, call); \
        int saved_ = errno;           \
        disarm();                     \
        errno = saved_;               \
        say_rc(#call, rc_);           \
    } while (0)

static void server(int fd)
{
    static char block[8 << 20];
    meet();
    char byte;
    MUST(read(trial_meet[0], &byte, 1)); /* the handler has run under SA_RESTART */
    send_all(fd, "late", 4);
    meet();
    recv_all(fd, block, 1);
    meet();
    meet();
}

static void client(int fd)
{
    static char block[8 << 20];
    char text[16];
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    struct epoll_event event = {.events = EPOLLIN};
    fd_set in;
    int set = (int)MUST(epoll_create1(0));
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    INTERRUPTED(0, recv(fd, text, 4, 0));
    INTERRUPTED(0, read(fd, text, 4));
    INTERRUPTED(0, recv(fd, text, 4, MSG_WAITALL));
    INTERRUPTED(0, poll(&entry, 1, -1));
    INTERRUPTED(SA_RESTART, poll(&entry, 1, -1)); /* never restarted: man 7 signal */
    INTERRUPTED(SA_RESTART, epoll_wait(set, &event, 1, -1));
    FD_ZERO(&in);
    FD_SET(fd, &in);
    INTERRUPTED(SA_RESTART, select(fd + 1, &in, NULL, NULL, NULL));
    struct timeval wait = {.tv_sec = LONG_MS / 1000};
    MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait));
    INTERRUPTED(SA_RESTART, recv(fd, text, 4, 0));
    wait.tv_sec = 0;
    MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait));
    meet();
    alarms = 0;
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    MUST(sigaction(SIGALRM, &action, NULL));
    signalling = 1;
    struct itimerval once = {.it_value = {.tv_usec = 20000}};
    MUST(setitimer(ITIMER_REAL, &once, NULL));
    say("restarted recv %zd", recv(fd, text, 4, 0));
    signalling = 0;
    say("signals %d", (int)alarms);
    meet();
    arm(0);
    ssize_t sent = send(fd, block, sizeof block, 0); /* nobody reads: partial, or EINTR */
    disarm();
    say("partial send: %d", sent > 0 && sent < (ssize_t)sizeof block);
    arm(0);
    sent = send(fd, block, sizeof block, 0);
    int saved = errno;
    disarm();
    say("then %s or a part", sent > 0 || saved == EINTR ? "EINTR" : strerrorname_np(saved));
    meet();
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
