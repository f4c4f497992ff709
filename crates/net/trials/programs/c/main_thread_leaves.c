// about: the main thread ends by pthread_exit; another one goes on with the connection, forks, and ends the process by exit
// upgraded: yes
#include "trial.h"

static int line;

static void *go_on(void *unused)
{
    (void)unused;
    char path[64], text[512] = {0};
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", getpid());
    for (int i = 0; i < LONG_MS; i++) { /* until the main thread is a zombie */
        int file = (int)MUST(open(path, O_RDONLY | O_CLOEXEC));
        MUST(read(file, text, sizeof text - 1));
        MUST(close(file));
        if (strrchr(text, ')')[2] == 'Z')
            break;
        poll(NULL, 0, 1);
    }
    round_trips(line, CLIENT, 100, 64);
    pid_t child = (pid_t)MUST(fork());
    if (child == 0)
        _exit(3);
    int status;
    MUST(waitpid(child, &status, 0));
    say("child %d", WEXITSTATUS(status));
    round_trips(line, CLIENT, 100, 64);
    exit(0);
}

static void server(int fd)
{
    round_trips(fd, SERVER, 200, 64);
    say("end %zd", recv(fd, &(char){0}, 1, 0));
}

static void client(int fd)
{
    pthread_t thread;
    line = fd;
    MUST(-pthread_create(&thread, NULL, go_on, NULL));
    MUST(-pthread_detach(thread));
    pthread_exit(NULL);
}

int main(void)
{
    return run_pair(server, client);
}
