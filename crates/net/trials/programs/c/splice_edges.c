// about: splice between a connection and what is not a pipe, with a full pipe, none to read, nothing, the end, and a reset; no byte is lost
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    int listener = open_door();
    char text[16] = {0};
    meet();
    send_all(fd, "four", 4);
    recv_all(fd, text, 5);
    say("%s", text);
    MUST(shutdown(fd, SHUT_WR));
    int other = warm_server(listener);
    close_hard(other);
    meet();
}

static void client(int fd)
{
    int port = find_door(), tube[2], full[2], gone[2];
    int file = (int)MUST(open("file", O_RDWR | O_CREAT, 0600)), pending = -1;
    char text[8] = {0};
    signal(SIGPIPE, SIG_IGN);
    MUST(write(file, "file", 4));
    MUST(lseek(file, 0, SEEK_SET));
    MUST(pipe(tube));
    MUST(pipe2(full, O_NONBLOCK));
    MUST(pipe(gone));
    MUST(close(gone[0]));
    while (write(full[1], text, 8) > 0)
        ;
    meet();
    await_bytes(fd, 4);
    SAY(splice(fd, NULL, file, NULL, 4, 0));
    SAY(splice(file, NULL, fd, NULL, 4, 0));
    SAY(splice(fd, NULL, tube[0], NULL, 4, 0)); /* the wrong end */
    SAY(splice(tube[1], NULL, fd, NULL, 4, 0));
    SAY(splice(fd, NULL, fd, NULL, 4, 0));
    SAY(splice(fd, NULL, 999, NULL, 4, 0));
    SAY(splice(fd, NULL, full[1], NULL, 4, SPLICE_F_NONBLOCK));
    SAY(splice(fd, NULL, gone[1], NULL, 4, 0));
    SAY(splice(fd, NULL, tube[1], NULL, 0, 0));
    SAY(splice(tube[0], NULL, fd, NULL, 4, SPLICE_F_NONBLOCK));
    MUST(ioctl(fd, FIONREAD, &pending));
    say("still there %d", pending);
    SAY(splice(fd, NULL, tube[1], NULL, 2, SPLICE_F_NONBLOCK));
    SAY(splice(fd, NULL, tube[1], NULL, 20, SPLICE_F_NONBLOCK));
    MUST(fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK));
    SAY(splice(fd, NULL, tube[1], NULL, 20, 0));
    MUST(fcntl(fd, F_SETFL, O_RDWR));
    SAY(read(tube[0], text, 8));
    say("%s", text);
    MUST(write(tube[1], "whole", 5));
    SAY(splice(tube[0], NULL, fd, NULL, 100, 0));
    await_event(fd, POLLRDHUP);
    SAY(splice(fd, NULL, tube[1], NULL, 20, 0));
    int other = warm_client(port);
    await_event(other, POLLERR);
    MUST(write(tube[1], "unsent", 6));
    SAY(splice(tube[0], NULL, other, NULL, 6, 0));
    SAY(splice(tube[0], NULL, other, NULL, 6, 0));
    SAY(splice(other, NULL, tube[1], NULL, 6, 0));
    MUST(ioctl(tube[0], FIONREAD, &pending));
    say("left in the pipe %d", pending);
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
