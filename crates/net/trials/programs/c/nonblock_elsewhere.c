// about: O_NONBLOCK set and cleared by another process after a fork holds for the next call
// upgraded: yes
#include "trial.h"

#define ROUNDS 20

static void server(int fd)
{
    for (int i = 0; i < ROUNDS; i++) {
        meet();
        send_all(fd, "data", 4);
        round_trips(fd, SERVER, 10, 64);
    }
    prove(fd, SERVER);
}

/* Sets what it is told until there is no more. */
static void set_flags(int fd, int orders, int done)
{
    for (int flags; read(orders, &flags, sizeof flags) == sizeof flags;) {
        MUST(fcntl(fd, F_SETFL, flags));
        MUST(write(done, &flags, sizeof flags));
    }
    _exit(0);
}

static void client(int fd)
{
    char text[8] = {0};
    int orders[2], done[2], status;
    MUST(pipe(orders));
    MUST(pipe(done));
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        close(orders[1]);
        set_flags(fd, orders[0], done[1]);
    }
    for (int i = 0; i < ROUNDS; i++) {
        for (int flags = O_RDWR | O_NONBLOCK, round = 0; round < 2; round++, flags = O_RDWR) {
            MUST(write(orders[1], &flags, sizeof flags));
            MUST(read(done[0], &flags, sizeof flags));
            if (round == 0)
                SAY(recv(fd, text, 4, 0));
        }
        meet();
        say("%d: blocks again: %zd", i, recv(fd, text, 4, MSG_WAITALL));
        round_trips(fd, CLIENT, 10, 64);
    }
    close(orders[1]);
    MUST(waitpid(child, &status, 0));
    prove(fd, CLIENT);
}

int main(void)
{
    return run_pair(server, client);
}
