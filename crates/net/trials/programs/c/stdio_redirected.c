// about: a connection that becomes stdin, stdout and stderr by dup2 in the process itself, without exec: printf, fgets, perror
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    char text[64] = {0};
    recv_all(fd, text, 12);
    say("%s", text);
    send_all(fd, "a line\n", 7);
    memset(text, 0, sizeof text);
    recv_all(fd, text, 14);
    say("%s", text);
    memset(text, 0, sizeof text);
    recv_all(fd, text, 4);
    say("%s, end %zd", text, recv(fd, text, 1, 0));
}

static void client(int fd)
{
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        char line[64] = {0};
        for (int number = 0; number < 3; number++)
            MUST(dup2(fd, number));
        MUST(close(fd));
        printf("%s %d\n", "number", 1234);
        fflush(stdout);
        if (fgets(line, sizeof line, stdin) == NULL)
            _exit(1);
        fprintf(stderr, "heard: %s", line);
        puts("end");
        fflush(stdout);
        _exit(0);
    }
    int status;
    MUST(close(fd));
    MUST(waitpid(child, &status, 0));
    say("child ended %d", status);
}

int main(void)
{
    return run_pair(server, client);
}
