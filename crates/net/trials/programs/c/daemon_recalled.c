// about: bytes that a daemon has sent, whose first process is gone, are found by fdopen
// upgraded: yes
#include "trial.h"

/* Connects, becomes a daemon with the connection and sends. Makes its next call on the connection
 * when told to, and says what comes back. */
static void daemon_with_connection(int port, int notice, int leave)
{
    char text[5];
    int fd = connect_at("127.0.0.1", port);
    warm_up(fd, CLIENT);
    MUST(prctl(PR_SET_PDEATHSIG, 0));
    if (MUST(fork()) > 0)
        _exit(0);
    alarm(20); /* no other process ends this one */
    send_all(fd, "hello", 5);
    MUST(write(notice, "s", 1));
    MUST(read(leave, text, 1));
    bool whole = recv(fd, text, 5, MSG_WAITALL) == 5 && memcmp(text, "world", 5) == 0;
    MUST(write(notice, whole ? "w" : "?", 1));
    _exit(0);
}

int main(void)
{
    int notice[2], leave[2], status, listener = listen_at("127.0.0.1");
    char text[6] = "", byte;
    MUST(pipe(notice));
    MUST(pipe(leave));
    pid_t first = (pid_t)MUST(fork());
    if (first == 0)
        daemon_with_connection(port_of(listener), notice[1], leave[0]);
    MUST(close(notice[1]));
    int fd = accept_at(listener);
    warm_up(fd, SERVER);
    MUST(waitpid(first, &status, 0));
    MUST(read(notice[0], &byte, 1));
    FILE *stream = fdopen(fd, "r+");
    MUST(write(leave[1], "l", 1));
    say("read %zu", fread(text, 1, 5, stream));
    say("'%s'", text);
    fwrite("world", 1, 5, stream);
    say("flushed %d", fflush(stream));
    ssize_t got = read(notice[0], &byte, 1);
    say("notice %zd %c", got, byte);
    return 0;
}
