// about: three programs in a row by execv, execveat and fexecve, with one connection that each of them finds and uses
// upgraded: yes
#include "trial.h"
#ifndef AT_EMPTY_PATH
#define AT_EMPTY_PATH 0x1000
#endif

static void server(int fd)
{
    char text[8] = {0}, byte;
    for (int life = 0; life < 4; life++) {
        round_trips(fd, SERVER, 40, 64);
        recv_all(fd, text, 5);
        say("%s", text);
        send_all(fd, "k", 1);
    }
    say("end %zd", recv(fd, &byte, 1, 0));
}

extern char **environ;

static void live(int fd, int life)
{
    char number[16], next[16], text[8], byte;
    round_trips(fd, CLIENT, 40, 64);
    snprintf(text, sizeof text, "life%d", life);
    send_all(fd, text, 5);
    recv_all(fd, &byte, 1);
    snprintf(number, sizeof number, "%d", fd);
    snprintf(next, sizeof next, "%d", life + 1);
    char *argv[] = {(char *)"exec_chain", number, next, NULL};
    int file = (int)MUST(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    switch (life) {
    case 0: execv("/proc/self/exe", argv); break;
    case 1: execveat(file, "", argv, environ, AT_EMPTY_PATH); break;
    case 2: fexecve(file, argv, environ); break;
    default: exit(0);
    }
    give_up("exec");
}

static void client(int fd)
{
    live(fd, 0);
}

int main(int argc, char **argv)
{
    if (argc == 3)
        live(atoi(argv[1]), atoi(argv[2]));
    return run_pair(server, client);
}
