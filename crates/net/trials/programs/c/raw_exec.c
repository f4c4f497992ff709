// about: execve and execveat by number with inherited connections, on which bytes are on their way
// upgraded: yes
#include "trial.h"

extern char **environ;

static void server(int fd)
{
    int listener = open_door();
    char text[16];
    for (int way = 0; way < 2; way++) {
        int one = warm_server(listener);
        send_all(one, "in flight", 9);
        meet();
        for (int i = 0; i < 30; i++) {
            recv_all(one, text, 4);
            send_all(one, text, 4);
        }
        say("end %zd", recv(one, text, 1, 0));
        MUST(close(one));
    }
    prove(fd, SERVER);
}

/* After exec. */
static int second_life(int fd)
{
    char text[16];
    recv_all(fd, text, 9);
    for (int i = 0; i < 30; i++) {
        send_all(fd, "ping", 4);
        recv_all(fd, text, 4);
    }
    return 0;
}

static void client(int fd)
{
    int port = find_door();
    MUST(fcntl(fd, F_SETFD, FD_CLOEXEC));
    for (int way = 0; way < 2; way++) {
        int status, one = connect_at("127.0.0.1", port);
        char number[16], *argv[] = {(char *)"raw_exec", number, NULL};
        snprintf(number, sizeof number, "%d", one);
        warm_up(one, CLIENT);
        await_bytes(one, 9);
        meet();
        pid_t child = (pid_t)MUST(fork());
        if (child == 0) {
            if (way == 0)
                syscall(SYS_execve, "/proc/self/exe", argv, environ);
            else
                syscall(SYS_execveat, AT_FDCWD, "/proc/self/exe", argv, environ, 0);
            give_up("exec");
        }
        MUST(close(one));
        MUST(waitpid(child, &status, 0));
        say("way %d: %#x", way, status);
    }
    prove(fd, CLIENT);
}

int main(int argc, char **argv)
{
    return argc == 2 ? second_life(atoi(argv[1])) : run_pair(server, client);
}
