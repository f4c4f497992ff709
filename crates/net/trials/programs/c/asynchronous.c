// about: O_ASYNC: SIGIO tells of bytes that arrive on what was an upgraded connection
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    for (int i = 0; i < 5; i++) {
        meet();
        send_all(fd, "data", 4);
    }
    round_trips(fd, SERVER, 60, 64);
}

static void client(int fd)
{
    sigset_t news;
    char text[8];
    struct timespec wait = {.tv_sec = LONG_MS / 1000}, none = {0};
    sigemptyset(&news);
    sigaddset(&news, SIGIO);
    MUST(sigprocmask(SIG_BLOCK, &news, NULL));
    SAY(fcntl(fd, F_SETOWN, getpid()));
    SAY(fcntl(fd, F_SETFL, O_RDWR | O_ASYNC));
    for (int i = 0; i < 5; i++) {
        while (sigtimedwait(&news, NULL, &none) == SIGIO)
            ;
        meet();
        say("told %d", sigtimedwait(&news, NULL, &wait) == SIGIO);
        recv_all(fd, text, 4);
    }
    SAY(fcntl(fd, F_SETFL, O_RDWR));
    round_trips(fd, CLIENT, 60, 64);
}

int main(void)
{
    return run_pair(server, client);
}
