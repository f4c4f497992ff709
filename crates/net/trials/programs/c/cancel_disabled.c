// about: cancellation that is disabled, or deferred while data are there, takes no bytes away
// upgraded: yes
#include "trial.h"

static int line;

static void immune(void)
{
    char text[8] = {0};
    int old;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    say("immune: recv %zd %s", recv(line, text, 4, MSG_WAITALL), text);
    pthread_setcancelstate(old, NULL);
    recv(line, text, 4, 0);
    say("not reached");
}

static void server(int fd)
{
    meet();
    send_all(fd, "data", 4);
    meet();
    send_all(fd, "rest", 4);
    round_trips(fd, SERVER, 60, 64);
}

static void client(int fd)
{
    struct sleeper sleeper;
    char text[8] = {0};
    line = fd;
    start_sleeper(&sleeper, immune);
    MUST(pthread_cancel(sleeper.thread));
    meet();
    say("cancelled at last %d", join_sleeper(&sleeper));
    meet();
    recv_all(fd, text, 4);
    say("%s", text);
    round_trips(fd, CLIENT, 60, 64);
}

int main(void)
{
    return run_pair(server, client);
}
