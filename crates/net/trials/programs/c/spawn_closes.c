// about: posix_spawn and fork+exec: a close-on-exec connection is not in the new program, one without it is, by its number
// upgraded: yes
#include "trial.h"
#include <spawn.h>

extern char **environ;

static void server(int fd)
{
    char text[8] = {0};
    recv_all(fd, text, 6);
    say("%s", text);
    round_trips(fd, SERVER, 60, 64);
}

/* In the new program: says what the two numbers are, and writes to the second. */
static int second_life(char **argv)
{
    int closed = atoi(argv[1]), open = atoi(argv[2]);
    struct stat facts;
    say("first open %d, second a socket %d", fcntl(closed, F_GETFD) >= 0, fstat(open, &facts) == 0 && S_ISSOCK(facts.st_mode));
    send_all(open, "child!", 6);
    return 0;
}

static void client(int fd)
{
    char one[16], two[16], out[16];
    int status, open = (int)MUST(dup(fd));
    MUST(fcntl(fd, F_SETFD, FD_CLOEXEC));
    MUST(fcntl(open, F_SETFD, 0));
    MUST(fcntl(trial_out, F_SETFD, 0));
    snprintf(one, sizeof one, "%d", fd);
    snprintf(two, sizeof two, "%d", open);
    snprintf(out, sizeof out, "%d", trial_out);
    pid_t child;
    char *argv[] = {(char *)"spawn_closes", one, two, out, NULL};
    if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, argv, environ) != 0)
        give_up("posix_spawn");
    MUST(waitpid(child, &status, 0));
    say("child ended %d", status);
    MUST(close(open));
    round_trips(fd, CLIENT, 60, 64);
}

int main(int argc, char **argv)
{
    if (argc == 4) {
        trial_out = atoi(argv[3]);
        return second_life(argv);
    }
    return run_pair(server, client);
}
