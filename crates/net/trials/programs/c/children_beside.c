// about: popen, system, posix_spawn and vfork beside an upgraded connection, which goes on as before
// upgraded: yes
#include "trial.h"
#include <spawn.h>

extern char **environ;

static void server(int fd)
{
    round_trips(fd, SERVER, 250, 128);
}

static void client(int fd)
{
    char line[64] = {0};
    FILE *tube = popen("echo popened; exit 3", "r");
    round_trips(fd, CLIENT, 50, 128);
    if (fgets(line, sizeof line, tube) == NULL)
        give_up("popen");
    say("%s status %d", strtok(line, "\n"), pclose(tube));
    round_trips(fd, CLIENT, 50, 128);
    say("system %d", system("exit 4"));
    round_trips(fd, CLIENT, 50, 128);
    pid_t child;
    char *const words[] = {"true", NULL};
    say("posix_spawnp %d", posix_spawnp(&child, "true", NULL, NULL, words, environ));
    int status;
    MUST(waitpid(child, &status, 0));
    say("true %d", status);
    say("posix_spawn of nothing %d", posix_spawn(&child, "/nonexistent", NULL, NULL, words, environ) == ENOENT);
    round_trips(fd, CLIENT, 50, 128);
    child = vfork();
    if (child == 0) {
        execl("/nonexistent", "nothing", NULL);
        _exit(errno == ENOENT ? 11 : 12);
    }
    MUST(waitpid(child, &status, 0));
    say("vfork and a failing exec %d", WEXITSTATUS(status));
    errno = 0;
    execl("/nonexistent", "nothing", NULL);
    say("failing exec: %s", strerrorname_np(errno));
    round_trips(fd, CLIENT, 50, 128);
}

int main(void)
{
    return run_pair(server, client);
}
