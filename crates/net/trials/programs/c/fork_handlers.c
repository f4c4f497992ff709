// about: pthread_atfork handlers that send and receive: before the fork, in the parent and in the child, which closes its copy
// upgraded: yes
#include "trial.h"

static int line;

static void ask(const char *who)
{
    char text[4];
    send_all(line, who, 4);
    recv_all(line, text, 4);
    say("%.4s %.4s", who, text);
}

static void before(void)
{
    ask("befo");
}

static void in_parent(void)
{
    ask("pare");
}

static void in_child(void)
{
    MUST(close(line));
    line = -1;
}

static void server(int fd)
{
    char text[4];
    for (int i = 0; i < 20; i++) {
        recv_all(fd, text, 4);
        send_all(fd, "eard", 4);
    }
    say("end %zd", recv(fd, text, 1, 0));
}

static void client(int fd)
{
    line = fd;
    MUST(-pthread_atfork(before, in_parent, in_child));
    for (int i = 0; i < 10; i++) {
        int status;
        pid_t child = (pid_t)MUST(fork());
        if (child == 0)
            _exit(line == -1 ? 6 : 7);
        MUST(waitpid(child, &status, 0));
        say("child %d", WEXITSTATUS(status));
    }
    MUST(close(fd));
}

int main(void)
{
    return run_pair(server, client);
}
