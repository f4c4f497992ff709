// about: posix_spawn with addclose, addopen over a connection, adddup2 onto itself, addclosefrom, and what fails: the parent's connection is as it was
// upgraded: yes
#include "trial.h"
#include <spawn.h>

extern char **environ;
static int line;

/* In the new program: is the number a socket, something else, or closed? */
static int second_life(int fd)
{
    struct stat facts;
    if (fstat(fd, &facts) != 0)
        return 1;
    return S_ISSOCK(facts.st_mode) ? 2 : 3;
}

static void spawn(const char *what, const char *path, void (*act)(posix_spawn_file_actions_t *))
{
    char number[16];
    char *argv[] = {(char *)"spawn_actions", number, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child = -1;
    int status = -1;
    snprintf(number, sizeof number, "%d", line);
    MUST(-posix_spawn_file_actions_init(&actions));
    act(&actions);
    int rc = posix_spawn(&child, path, &actions, NULL, argv, environ);
    MUST(-posix_spawn_file_actions_destroy(&actions));
    if (rc == 0)
        MUST(waitpid(child, &status, 0));
    say("%s: %s, exit %d", what, rc == 0 ? "started" : strerrorname_np(rc), WEXITSTATUS(status));
    round_trips(line, CLIENT, 30, 64);
}

static void nothing(posix_spawn_file_actions_t *actions)
{
    (void)actions;
}

static void closed(posix_spawn_file_actions_t *actions)
{
    MUST(-posix_spawn_file_actions_addclose(actions, line));
}

static void opened(posix_spawn_file_actions_t *actions)
{
    MUST(-posix_spawn_file_actions_addopen(actions, line, "/dev/null", O_RDWR, 0));
}

static void onto_itself(posix_spawn_file_actions_t *actions)
{
    MUST(-posix_spawn_file_actions_adddup2(actions, line, line)); /* clears close-on-exec */
}

static void from_three(posix_spawn_file_actions_t *actions)
{
    MUST(-posix_spawn_file_actions_addclosefrom_np(actions, 3));
}

static void impossible(posix_spawn_file_actions_t *actions)
{
    MUST(-posix_spawn_file_actions_addopen(actions, 5, "/no/such/file", O_RDONLY, 0));
}

static void client(int fd)
{
    line = (int)MUST(fcntl(fd, F_DUPFD_CLOEXEC, 40));
    MUST(close(fd));
    spawn("close-on-exec", "/proc/self/exe", nothing);
    spawn("addclose", "/proc/self/exe", closed);
    spawn("addopen", "/proc/self/exe", opened);
    spawn("addclosefrom", "/proc/self/exe", from_three);
    spawn("no such file", "/proc/self/exe", impossible);
    spawn("no such program", "/no/such/program", nothing);
    spawn("adddup2 onto itself", "/proc/self/exe", onto_itself);
    say("close-on-exec here %d", fcntl(line, F_GETFD));
}

static void server(int fd)
{
    for (int i = 0; i < 7; i++)
        round_trips(fd, SERVER, 30, 64);
    say("end %zd", recv(fd, &(char){0}, 1, 0));
}

int main(int argc, char **argv)
{
    return argc == 2 ? second_life(atoi(argv[1])) : run_pair(server, client);
}
