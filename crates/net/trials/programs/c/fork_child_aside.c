// about: a forked child that leaves the connection alone (BGSAVE) or closes all disturbs nothing
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    char text[8];
    for (int i = 0; i < 200; i++) {
        recv_all(fd, text, 4);
        send_all(fd, text, 4);
    }
    say("end %zd", recv(fd, text, 1, 0));
}

static void client(int fd)
{
    char text[8] = {0};
    for (int i = 0; i < 4; i++) {
        pid_t child = (pid_t)MUST(fork());
        if (child == 0) {
            if (i == 1)
                close(fd);
            if (i == 2)
                for (int each = 3; each < 256; each++)
                    close(each);
            if (i == 3)
                exit(5); /* runs exit handlers and destructors */
            _exit(5);
        }
        for (int turn = 0; turn < 50; turn++) {
            send_all(fd, "turn", 4);
            recv_all(fd, text, 4);
            if (turn == 25) {
                int status;
                MUST(waitpid(child, &status, 0));
                say("child %d", WEXITSTATUS(status));
            }
        }
    }
    MUST(close(fd));
}

int main(void)
{
    return run_pair(server, client);
}
