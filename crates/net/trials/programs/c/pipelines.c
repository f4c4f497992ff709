// about: a pipeline over three processes and four connections, each in its own thread or set: lines keep their order and the end travels through
// upgraded: yes
#include "trial.h"

enum { LINES = 4000 };

/* Reads lines and passes them on, a mark behind each. */
static void stage(int in, int out, char mark)
{
    char block[3000], line[128];
    size_t used = 0;
    for (ssize_t got; (got = MUST(recv(in, block, sizeof block, 0))) > 0;)
        for (ssize_t i = 0; i < got; i++) {
            if (block[i] != '\n') {
                line[used++] = block[i];
                continue;
            }
            line[used++] = mark;
            line[used++] = '\n';
            send_all(out, line, used);
            used = 0;
        }
    MUST(shutdown(out, SHUT_WR));
}

static void server(int fd)
{
    int listener = open_door();
    int next = warm_server(listener);
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
        int third = warm_server(listener), fourth = warm_server(listener);
        MUST(close(fd));
        MUST(close(next));
        stage(third, fourth, '2');
        _exit(0);
    }
    MUST(close(listener));
    stage(fd, next, '1');
    int status;
    MUST(waitpid(child, &status, 0));
    say("child %d", status);
}

static int third, fourth, second;

static void pass(void)
{
    stage(second, third, '+');
}

static int source;

static void feed(void)
{
    char line[64];
    for (int i = 0; i < LINES; i++)
        send_all(source, line, (size_t)snprintf(line, sizeof line, "line %d \n", i));
    MUST(shutdown(source, SHUT_WR));
}

static void client(int fd)
{
    int port = find_door();
    source = fd;
    second = warm_client(port);
    third = warm_client(port);
    fourth = warm_client(port);
    struct sleeper feeder = {.body = feed}, passer = {.body = pass};
    MUST(-pthread_create(&feeder.thread, NULL, run_sleeper, &feeder));
    MUST(-pthread_create(&passer.thread, NULL, run_sleeper, &passer));
    FILE *in = fdopen(dup(fourth), "r");
    char line[128], expected[128];
    int count = 0, wrong = 0;
    while (fgets(line, sizeof line, in) != NULL) {
        snprintf(expected, sizeof expected, "line %d 1+2\n", count++);
        wrong += strcmp(line, expected) != 0;
    }
    say("lines %d, wrong %d", count, wrong);
    join_sleeper(&feeder);
    join_sleeper(&passer);
}

int main(void)
{
    return run_pair(server, client);
}
