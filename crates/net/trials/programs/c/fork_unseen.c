// about: children made by _Fork and by the bare system call, past all handlers: they end, exec, or use their own connection
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    char text[8] = {0};
    for (int i = 0; i < 3; i++) {
        round_trips(fd, SERVER, 30, 64);
        recv_all(fd, text, 4);
        say("%s", text);
    }
    say("end %zd", recv(fd, text, 1, 0));
}

static void client(int fd)
{
    for (int way = 0; way < 3; way++) {
        int status;
        pid_t child = (pid_t)MUST(way == 1 ? syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : _Fork());
        if (child == 0) {
            if (way == 0)
                _exit(7);
            if (way == 1) {
                execl("/bin/true", "true", NULL);
                _exit(9);
            }
            close(fd); /* its copy only */
            int tube[2];
            if (pipe(tube) != 0 || write(tube[1], "x", 1) != 1)
                _exit(8);
            char byte;
            _exit(read(tube[0], &byte, 1) == 1 ? 5 : 6);
        }
        MUST(waitpid(child, &status, 0));
        say("way %d: %#x", way, status);
        round_trips(fd, CLIENT, 30, 64);
        send_all(fd, "next", 4);
    }
    MUST(close(fd));
}

int main(void)
{
    return run_pair(server, client);
}
