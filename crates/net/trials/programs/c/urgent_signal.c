// about: SIGURG reaches the owner of an upgraded connection, and MSG_OOB reads the byte
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    sigset_t urgent;
    sigemptyset(&urgent);
    sigaddset(&urgent, SIGURG);
    MUST(sigprocmask(SIG_BLOCK, &urgent, NULL));
    SAY(fcntl(fd, F_SETOWN, getpid()));
    meet();
    struct timespec wait = {.tv_sec = LONG_MS / 1000};
    say("signal %d", sigtimedwait(&urgent, NULL, &wait) == SIGURG);
    await_event(fd, POLLPRI);
    char byte = 0;
    say("oob %zd %c", recv(fd, &byte, 1, MSG_OOB), byte);
    round_trips(fd, SERVER, 100, 64);
}

static void client(int fd)
{
    meet();
    SAY(send(fd, "u", 1, MSG_OOB));
    round_trips(fd, CLIENT, 100, 64);
}

int main(void)
{
    return run_pair(server, client);
}
