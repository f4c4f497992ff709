// about: sendfile with nothing to send, beyond the end, from a pipe, a socket, a directory and memory, to a closed and to a shut direction
// upgraded: yes
#include "trial.h"
#include <sys/sendfile.h>

static void server(int fd)
{
    char text[64] = {0};
    meet();
    await_event(fd, POLLIN);
    recv_all(fd, text, 20);
    say("%s", text);
    say("end %zd", recv(fd, text, 1, 0));
    meet();
}

static void client(int fd)
{
    int file = (int)MUST(open("file", O_RDWR | O_CREAT, 0600)), folder = (int)MUST(open(".", O_RDONLY | O_DIRECTORY));
    int memory = (int)MUST(memfd_create("memory", 0)), sink = (int)MUST(open("file", O_WRONLY)), tube[2], pair[2];
    off_t at = 0, far = 100, below = -3;
    MUST(pipe(tube));
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    MUST(write(file, "0123456789", 10));
    MUST(write(memory, "memory", 6));
    SAY(sendfile(fd, file, &at, 0));
    SAY(sendfile(fd, file, NULL, 10)); /* at its end */
    SAY(sendfile(fd, file, &far, 10));
    SAY(sendfile(fd, file, &below, 10));
    SAY(sendfile(fd, sink, &at, 10));
    SAY(sendfile(fd, folder, &at, 10));
    SAY(sendfile(fd, tube[0], &at, 10));
    SAY(sendfile(fd, pair[0], NULL, 10));
    SAY(sendfile(fd, 999, &at, 10));
    SAY(sendfile(999, file, &at, 10));
    SAY(sendfile(file, fd, NULL, 10));
    meet();
    SAY(sendfile(fd, file, &at, 4));
    say("offset %ld, position %ld", (long)at, (long)lseek(file, 0, SEEK_CUR));
    SAY(sendfile(fd, file, &at, 1000));
    say("offset %ld", (long)at);
    MUST(lseek(file, 6, SEEK_SET));
    SAY(sendfile(fd, file, NULL, 1000));
    say("position %ld", (long)lseek(file, 0, SEEK_CUR));
    at = 0;
    SAY(sendfile(fd, memory, &at, 6));
    SAY(shutdown(fd, SHUT_WR));
    count_signals(SIGPIPE, 0);
    at = 0;
    SAY(sendfile(fd, file, &at, 4));
    say("offset %ld, signals %d", (long)at, (int)trial_signals);
    SAY(sendfile(fd, file, &far, 4));
    say("signals %d", (int)trial_signals);
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
