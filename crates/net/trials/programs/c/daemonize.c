// about: daemon() before and after connections exist, and a hand-made daemon that closes everything from 3 up
// upgraded: yes
#include "trial.h"

static int port, listener;

/* A child that becomes a daemon in `way`, then answers one connection. */
static void serve_as_daemon(int way, int notice)
{
    MUST(prctl(PR_SET_PDEATHSIG, 0));
    if (way == 0) {
        MUST(daemon(1, 1));
    } else {
        if (MUST(fork()) > 0)
            _exit(0);
        MUST(setsid());
        for (int fd = 3; fd < 1024; fd++)
            if (fd != listener && fd != notice)
                close(fd);
    }
    alarm(20); /* nobody else ends it */
    int fd = accept_at(listener);
    warm_up(fd, SERVER);
    char text[8];
    ssize_t got = recv(fd, text, 8, 0);
    MUST(write(notice, got == 0 ? "E" : "?", 1));
    _exit(0);
}

int main(void)
{
    listener = listen_at("127.0.0.1");
    port = port_of(listener);
    for (int way = 0; way < 2; way++) {
        int notice[2];
        char byte = 0;
        MUST(pipe(notice));
        pid_t child = (pid_t)MUST(fork());
        if (child == 0)
            serve_as_daemon(way, notice[1]);
        MUST(close(notice[1]));
        int status;
        MUST(waitpid(child, &status, 0));
        say("first process ended %d", status);
        int fd = connect_at("127.0.0.1", port);
        warm_up(fd, CLIENT);
        MUST(close(fd));
        ssize_t got = read(notice[0], &byte, 1);
        say("notice %zd %c", got, byte);
        MUST(close(notice[0]));
    }
    return 0;
}
