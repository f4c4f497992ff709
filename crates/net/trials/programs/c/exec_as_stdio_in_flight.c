// about: a connection given to a child as stdin and stdout by fork+exec, vfork+exec, posix_spawn and system, with a line on its way
// upgraded: yes
#include "trial.h"
#include <spawn.h>

extern char **environ;
#define ROUNDS 4

static void server(int fd)
{
    char text[64];
    for (int i = 0; i < ROUNDS; i++) {
        send_all(fd, "a line\n", 7);
        memset(text, 0, sizeof text);
        recv_all(fd, text, 7);
        text[6] = 0;
        say("%s", text);
        round_trips(fd, SERVER, 20, 64); /* the parent goes on with it */
    }
    say("end %zd", recv(fd, text, 1, 0));
}

static void client(int fd)
{
    char *const words[] = {"sh", "-c", "read line; echo \"$line\"", NULL};
    for (volatile int i = 0; i < ROUNDS; i++) {
        volatile pid_t child = 0;
        int status;
        await_bytes(fd, 7);
        if (i == 0) {
            child = (pid_t)MUST(fork());
            if (child == 0) {
                MUST(dup2(fd, 0));
                MUST(dup2(fd, 1));
                execve("/bin/sh", words, environ);
                _exit(9);
            }
        } else if (i == 1) {
            child = vfork();
            if (child == 0) {
                dup2(fd, 0);
                dup2(fd, 1);
                close(fd);
                execv("/bin/sh", words);
                _exit(9);
            }
        } else if (i == 2) {
            posix_spawn_file_actions_t actions;
            posix_spawn_file_actions_init(&actions);
            posix_spawn_file_actions_adddup2(&actions, fd, 0);
            posix_spawn_file_actions_adddup2(&actions, fd, 1);
            posix_spawn_file_actions_addclose(&actions, fd);
            if (posix_spawn((pid_t *)&child, "/bin/sh", &actions, NULL, words, environ) != 0)
                give_up("posix_spawn");
            posix_spawn_file_actions_destroy(&actions);
        } else {
            char command[64];
            snprintf(command, sizeof command, "read line <&%d; echo \"$line\" >&%d", fd, fd);
            status = system(command);
            say("system %d", status);
        }
        if (child > 0) {
            MUST(waitpid(child, &status, 0));
            say("child %d", status);
        }
        round_trips(fd, CLIENT, 20, 64);
    }
    MUST(close(fd));
}

int main(void)
{
    return run_pair(server, client);
}
