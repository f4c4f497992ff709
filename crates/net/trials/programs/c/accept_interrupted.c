// about: processes forked before accept whose accept is interrupted: EINTR, or a restart, and no connection is lost
// upgraded: yes
#include "trial.h"

static volatile int ticks;
static void tick(int number)
{
    ticks += number == SIGUSR1;
}

static void worker(int listener, int flags)
{
    struct sigaction action = {.sa_handler = tick, .sa_flags = flags};
    MUST(sigaction(SIGUSR1, &action, NULL));
    int wrong = 0;
    for (;;) {
        char byte;
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) {
            wrong += errno != EINTR || flags != 0;
            continue;
        }
        recv_all(fd, &byte, 1);
        if (byte == 'q')
            _exit(wrong);
        warm_up(fd, SERVER);
        MUST(close(fd));
    }
}

static void server(int first)
{
    int listener = listen_at("127.0.0.1"), port = port_of(listener), status;
    pid_t workers[4];
    struct sigaction ignore = {.sa_handler = SIG_IGN}; /* until a worker is ready for it */
    MUST(sigaction(SIGUSR1, &ignore, NULL));
    for (int i = 0; i < 4; i++) {
        workers[i] = (pid_t)MUST(fork());
        if (workers[i] == 0)
            worker(listener, i % 2 ? SA_RESTART : 0);
    }
    MUST(write(trial_meet[1], &port, sizeof port));
    char byte;
    struct pollfd told = {.fd = trial_meet[0], .events = POLLIN};
    while (poll(&told, 1, 1) == 0)
        for (int i = 0; i < 4; i++)
            kill(workers[i], SIGUSR1);
    MUST(read(trial_meet[0], &byte, 1));
    for (int i = 0; i < 4; i++) {
        int fd = connect_at("127.0.0.1", port);
        send_all(fd, "q", 1);
        say("end %zd", recv(fd, &byte, 1, 0));
        MUST(close(fd));
    }
    for (int i = 0; i < 4; i++) {
        MUST(waitpid(workers[i], &status, 0));
        say("worker %#x", status);
    }
    MUST(close(first));
}

static void client(int first)
{
    int port;
    char byte;
    MUST(read(trial_meet[0], &port, sizeof port));
    poll(NULL, 0, SHORT_MS); /* the workers are inside accept by now, or it does not matter */
    for (int i = 0; i < 30; i++) {
        int fd = connect_at("127.0.0.1", port);
        send_all(fd, "c", 1);
        warm_up(fd, CLIENT);
        MUST(close(fd));
    }
    MUST(write(trial_meet[1], "x", 1));
    say("end %zd", recv(first, &byte, 1, 0));
}

int main(void)
{
    return run_pair(server, client);
}
