// about: inetd's way with wait: a listener becomes number 0 of a new program, which accepts on it and serves
// upgraded: yes
#include "trial.h"
#include <spawn.h>

extern char **environ;

static int second_life(void)
{
    int accepting = -1;
    socklen_t length = sizeof accepting;
    if (getsockopt(0, SOL_SOCKET, SO_ACCEPTCONN, &accepting, &length) != 0 || accepting != 1)
        return 9;
    for (int i = 0; i < 2; i++) {
        int fd = accept_at(0);
        warm_up(fd, SERVER);
        MUST(close(fd));
    }
    return 0;
}

static void server(int fd)
{
    char *argv[] = {(char *)"exec_listener", (char *)"again", NULL};
    int listener = open_door(), status;
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
        MUST(dup2(listener, 0));
        execv("/proc/self/exe", argv);
        _exit(127);
    }
    MUST(waitpid(child, &status, 0));
    say("by fork and exec: %d", status);
    posix_spawn_file_actions_t actions;
    MUST(-posix_spawn_file_actions_init(&actions));
    MUST(-posix_spawn_file_actions_adddup2(&actions, listener, 0));
    MUST(-posix_spawn_file_actions_addclose(&actions, listener));
    MUST(-posix_spawn(&child, "/proc/self/exe", &actions, NULL, argv, environ));
    MUST(posix_spawn_file_actions_destroy(&actions));
    MUST(waitpid(child, &status, 0));
    say("by posix_spawn: %d", status);
    int other = warm_server(listener); /* still ours, too */
    MUST(close(other));
    round_trips(fd, SERVER, 20, 64);
}

static void client(int fd)
{
    int port = find_door();
    for (int i = 0; i < 5; i++) {
        int other = warm_client(port);
        say("end %zd", recv(other, &(char){0}, 1, 0));
        MUST(close(other));
    }
    round_trips(fd, CLIENT, 20, 64);
}

int main(int argc, char **argv)
{
    (void)argv;
    return argc == 2 ? second_life() : run_pair(server, client);
}
