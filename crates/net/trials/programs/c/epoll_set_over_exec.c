// about: an epoll set with a connection in it that both survive exec: the new program waits in the set and reads what is reported
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    char byte, text[8] = {0};
    MUST(read(trial_meet[0], &byte, 1)); /* written by the new program */
    for (int i = 0; i < 80; i++) {
        send_all(fd, "ping", 4);
        recv_all(fd, text, 4);
    }
    say("%s", text);
    MUST(shutdown(fd, SHUT_WR));
    say("end %zd", recv(fd, text, 1, 0));
}

static int second_life(int fd, int set, int notice)
{
    struct epoll_event got = {0};
    char text[8];
    int reports = 0;
    if (epoll_wait(set, &got, 1, 0) != 0)
        return 3;
    MUST(write(notice, "x", 1));
    for (;; reports++) {
        if (epoll_wait(set, &got, 1, LONG_MS) != 1 || got.data.u32 != 77)
            return 4;
        ssize_t got_bytes = recv(fd, text, 4, MSG_WAITALL);
        if (got_bytes == 0)
            break;
        send_all(fd, "pong", 4);
    }
    return reports == 80 ? 0 : 5;
}

static void client(int fd)
{
    char numbers[3][16];
    struct epoll_event want = {.events = EPOLLIN, .data.u32 = 77};
    int set = (int)MUST(epoll_create1(0));
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
    SAY(epoll_wait(set, &want, 1, 0));
    MUST(fcntl(trial_meet[1], F_SETFD, 0));
    snprintf(numbers[0], 16, "%d", fd);
    snprintf(numbers[1], 16, "%d", set);
    snprintf(numbers[2], 16, "%d", trial_meet[1]);
    execl("/proc/self/exe", "epoll_set_over_exec", numbers[0], numbers[1], numbers[2], NULL);
    give_up("exec");
}

int main(int argc, char **argv)
{
    return argc == 4 ? second_life(atoi(argv[1]), atoi(argv[2]), atoi(argv[3])) : run_pair(server, client);
}
