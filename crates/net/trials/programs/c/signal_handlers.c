// about: a signal handler sends and receives on the connection that the main program is blocked on
// upgraded: yes
#include "trial.h"
#include <sys/time.h>

static int line;
static volatile sig_atomic_t handled, wrong;

static void on_timer(int number)
{
    (void)number;
    int saved = errno;
    if (handled < 20) {
        handled++;
        if (send(line, "h", 1, MSG_NOSIGNAL) != 1)
            wrong++;
    }
    errno = saved;
}

static void server(int fd)
{
    char byte;
    int from_handler = 0;
    for (;;) {
        recv_all(fd, &byte, 1);
        if (byte == 'q')
            break;
        from_handler += byte == 'h';
        if (byte == 'm')
            send_all(fd, "r", 1);
    }
    say("from the handler %d", from_handler);
    send_all(fd, "bye", 3);
}

static void client(int fd)
{
    char text[4] = {0};
    line = fd;
    struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
    MUST(sigaction(SIGALRM, &action, NULL));
    struct itimerval often = {.it_value = {.tv_usec = 500}, .it_interval = {.tv_usec = 500}};
    MUST(setitimer(ITIMER_REAL, &often, NULL));
    int turns = 0;
    while (handled < 20) {
        turns++;
        send_all(fd, "m", 1);
        recv_all(fd, text, 1);
        wrong += text[0] != 'r';
    }
    MUST(setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL));
    send_all(fd, "q", 1);
    recv_all(fd, text, 3);
    say("%s; handled %d, wrong %d, turns %d", text, (int)handled, (int)wrong, turns > 0);
}

int main(void)
{
    return run_pair(server, client);
}
