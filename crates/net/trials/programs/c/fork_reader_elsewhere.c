// about: fork while a thread is in recv: the peer sees the end once both processes have closed
// upgraded: any, one of the connections never carried a byte
#include "trial.h"

enum { WAYS = 3 };
static int line;

static void blocked(void)
{
    char byte;
    say("recv %zd", recv(line, &byte, 1, 0));
}

/* Way 0: the child closes first. Way 1: the parent closes first. Way 2: the parent closes before
 * the fork, while the thread is in recv. */
static void run(int fd, int way)
{
    struct sleeper sleeper;
    int closed[2], leave[2], go[2], status;
    char byte;
    line = fd;
    MUST(pipe2(closed, O_CLOEXEC));
    MUST(pipe2(leave, O_CLOEXEC));
    MUST(pipe2(go, O_CLOEXEC));
    start_sleeper(&sleeper, blocked);
    if (way == 2)
        MUST(close(fd));
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        close(leave[1]);
        close(go[1]);
        MUST(read(go[0], &byte, 1));
        if (way < 2)
            MUST(close(fd));
        MUST(write(closed[1], "c", 1));
        read(leave[0], &byte, 1); /* until the parent closes it */
        _exit(0);
    }
    close(leave[0]);
    if (way != 1) {
        MUST(write(go[1], "g", 1));
        MUST(read(closed[0], &byte, 1));
    }
    if (way < 2) {
        MUST(shutdown(fd, SHUT_RD));
        join_sleeper(&sleeper);
        MUST(close(fd));
    } else {
        meet(); /* the peer sends the byte that wakes the thread */
        join_sleeper(&sleeper);
    }
    if (way == 1) {
        MUST(write(go[1], "g", 1));
        MUST(read(closed[0], &byte, 1));
    }
    meet(); /* the peer has seen the end */
    close(leave[1]);
    MUST(waitpid(child, &status, 0));
    for (int i = 0; i < 2; i++) {
        close(closed[i]);
        close(go[i]);
    }
}

static void see_end(int fd, int way)
{
    char byte;
    if (way == 2) {
        meet();
        send_all(fd, "w", 1);
    }
    say("way %d: end %zd", way, recv(fd, &byte, 1, 0));
    meet();
    MUST(close(fd));
}

static void server(int fd)
{
    int door = open_door();
    close(fd);
    for (int way = 0; way < WAYS; way++)
        see_end(warm_server(door), way);
    for (int way = 0; way < WAYS; way++)
        see_end(accept_at(door), way);
    meet();
}

static void client(int fd)
{
    int port = find_door();
    close(fd);
    for (int way = 0; way < WAYS; way++)
        run(warm_client(port), way);
    for (int way = 0; way < WAYS; way++)
        run(connect_at("127.0.0.1", port), way);
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
