// about: dup, dup2, dup3 and F_DUPFD share one connection; the peer sees the end only after the last close
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    char text[64] = {0};
    recv_all(fd, text, 20);
    say("%s", text);
    SAY(recv(fd, text, 1, MSG_DONTWAIT)); /* four copies closed, one left */
    meet();
    meet();
    say("end %zd", recv(fd, text, 1, 0));
    meet();
}

static void client(int fd)
{
    int copies[4];
    copies[0] = (int)MUST(dup(fd));
    copies[1] = (int)MUST(fcntl(fd, F_DUPFD, 100));
    copies[2] = (int)MUST(dup2(fd, 77));
    copies[3] = (int)MUST(dup3(fd, 78, O_CLOEXEC));
    int with_flag = (int)MUST(fcntl(fd, F_DUPFD_CLOEXEC, 200));
    say("numbers %d %d %d %d", copies[1], copies[2], copies[3], with_flag);
    say("flags %d %d %d", fcntl(copies[1], F_GETFD), fcntl(copies[3], F_GETFD), fcntl(with_flag, F_GETFD));
    MUST(fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK)); /* of the description: all see it */
    say("shared flag %d", (fcntl(copies[2], F_GETFL) & O_NONBLOCK) != 0);
    char text[4];
    SAY(read(copies[3], text, 4));
    MUST(fcntl(copies[0], F_SETFL, O_RDWR));
    for (int i = 0; i < 4; i++) {
        MUST(write(copies[i], "copy ", 4));
        MUST(write(i % 2 ? fd : with_flag, "!", 1));
    }
    for (int i = 0; i < 4; i++)
        MUST(close(copies[i]));
    MUST(close(with_flag));
    meet();
    int pipes[2];
    MUST(pipe(pipes));
    int last = (int)MUST(dup(fd));
    say("dup2 over the original %d", dup2(pipes[0], fd) == fd);
    MUST(write(pipes[1], "p", 1));
    say("the number is a pipe now: %zd", read(fd, text, 1));
    int pending = -1;
    SAY(ioctl(last, FIONREAD, &pending));
    MUST(dup2(pipes[0], last)); /* the last copy goes by dup2 */
    meet();
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
