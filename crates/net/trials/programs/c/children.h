/* Children of the client's side that connect to the server's side, and end or are killed. */
#ifndef CHILDREN_H
#define CHILDREN_H
#include "trial.h"

/* What the child of way `way` does; the server listens at `port`. */
typedef void child_body(int way, int port);

static int child_notice[2] = {-1, -1};

/* In the child: it has come to where start_child() may return. */
SHARED void child_is_ready(void)
{
    MUST(write(child_notice[1], "r", 1));
}

/* Forks a child without `first`, the connection of the two sides; returns once it is ready. */
SHARED pid_t start_child(int first, child_body *body, int way, int port)
{
    char byte;
    if (child_notice[0] < 0)
        MUST(pipe(child_notice));
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
        MUST(close(first));
        body(way, port);
        for (;;)
            pause();
    }
    MUST(read(child_notice[0], &byte, 1));
    return child;
}

/* Waits for the end of `child`; its status. */
SHARED int await_child(pid_t child)
{
    int status;
    MUST(waitpid(child, &status, 0));
    return status;
}

/* One child for each way, killed when it is ready, between two meetings with the server. */
SHARED void kill_children(int first, child_body *body, int ways, int port)
{
    for (int way = 0; way < ways; way++) {
        pid_t child = start_child(first, body, way, port);
        meet();
        MUST(kill(child, SIGKILL));
        await_child(child);
        meet();
    }
}
#endif
