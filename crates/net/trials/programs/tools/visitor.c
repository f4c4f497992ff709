/* A client whose connections come, ask a few times and go.
 *
 * visitor PORT TURNS QUESTION END
 * stdin "visit N": N connections to 127.0.0.1, eight at a time; each asks QUESTION TURNS times,
 * whose answer ends with END, then says that it is done and waits for the server's end of file.
 * Prints "done" when the server has closed all of them. */
#include "trial.h"

#define GUESTS 8

static void hear(int fd, const char *end)
{
    static char answer[65536];
    size_t length = 0, wanted = strlen(end);
    while (length < wanted || memcmp(answer + length - wanted, end, wanted) != 0) {
        ssize_t got = MUST(recv(fd, answer + length, sizeof answer - length, 0));
        if (got == 0)
            give_up("no answer, but %zu bytes", length);
        length += (size_t)got;
    }
}

static char **arguments;

static void visit_together(void)
{
    int fds[GUESTS], port = atoi(arguments[1]), turns = atoi(arguments[2]);
    const char *question = arguments[3], *end = arguments[4];
    for (int i = 0; i < GUESTS; i++)
        fds[i] = connect_at("127.0.0.1", port);
    while (turns-- > 0) {
        for (int i = 0; i < GUESTS; i++)
            send_all(fds[i], question, strlen(question));
        for (int i = 0; i < GUESTS; i++)
            hear(fds[i], end);
    }
    for (int i = 0; i < GUESTS; i++)
        MUST(shutdown(fds[i], SHUT_WR));
    for (int i = 0; i < GUESTS; i++) {
        char byte;
        if (MUST(recv(fds[i], &byte, 1, 0)) != 0)
            give_up("an answer to no question");
        MUST(close(fds[i]));
    }
}

static void visit(long count)
{
    for (; count > 0; count -= GUESTS)
        visit_together();
    printf("done\n");
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
    arguments = argv;
    return obey("visit %ld", visit);
}
