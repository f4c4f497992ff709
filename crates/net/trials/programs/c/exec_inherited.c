// about: exec with an inherited connection on which nothing is under way
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    char text[64] = {0};
    char byte;
    MUST(read(trial_meet[0], &byte, 1)); /* written by the new program */
    send_all(fd, "to the new program", 18);
    recv_all(fd, text, 24);
    say("%s", text);
    for (int i = 0; i < 100; i++) {
        send_all(fd, "ping", 4);
        recv_all(fd, text, 4);
    }
    MUST(shutdown(fd, SHUT_WR));
    say("end %zd", recv(fd, text, 1, 0));
}

/* After exec: takes the message, answers, and ends at EOF. */
static int second_life(int fd, int notice)
{
    char text[64] = {0};
    MUST(write(notice, "x", 1));
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
    char number[16], pipe_number[16];
    MUST(fcntl(trial_meet[1], F_SETFD, 0));
    snprintf(pipe_number, sizeof pipe_number, "%d", trial_meet[1]);
    snprintf(number, sizeof number, "%d", fd);
    int doomed = (int)MUST(fcntl(fd, F_DUPFD_CLOEXEC, 60));
    (void)doomed;
    execl("/proc/self/exe", "exec_inherited", number, pipe_number, NULL);
    give_up("exec");
}

int main(int argc, char **argv)
{
    return argc == 3 ? second_life(atoi(argv[1]), atoi(argv[2])) : run_pair(server, client);
}
