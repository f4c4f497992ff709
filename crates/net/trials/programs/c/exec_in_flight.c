// about: exec with an inherited connection and bytes on their way to it
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    char text[64] = {0};
    send_all(fd, "to the new program", 18);
    meet();
    recv_all(fd, text, 24);
    say("%s", text);
    for (int i = 0; i < 100; i++) {
        send_all(fd, "ping", 4);
        recv_all(fd, text, 4);
    }
    MUST(shutdown(fd, SHUT_WR));
    say("end %zd", recv(fd, text, 1, 0));
}

/* After exec: says what was in flight, answers, and ends at EOF. */
static int second_life(int fd)
{
    char text[64] = {0};
    recv_all(fd, text, 18);
    send_all(fd, text, 18);
    send_all(fd, ", back", 6);
    for (;;) {
        ssize_t got = recv(fd, text, 4, MSG_WAITALL);
        if (got != 4)
            break;
        send_all(fd, text, 4);
    }
    return 0;
}

static void client(int fd)
{
    char number[16];
    meet();
    await_bytes(fd, 18);
    snprintf(number, sizeof number, "%d", fd);
    int doomed = (int)MUST(fcntl(fd, F_DUPFD_CLOEXEC, 60));
    (void)doomed;
    execl("/proc/self/exe", "exec_in_flight", number, NULL);
    give_up("exec");
}

int main(int argc, char **argv)
{
    return argc == 2 ? second_life(atoi(argv[1])) : run_pair(server, client);
}
