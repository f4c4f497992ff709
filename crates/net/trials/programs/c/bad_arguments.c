// about: null buffers, zero lengths, bad descriptors and bad vectors give the kernel's errno
// upgraded: yes
// variants: plain
// flags: -Wno-nonnull -Wno-stringop-overflow -Wno-stringop-overread
#include "trial.h"

static void server(int fd)
{
    send_all(fd, "data", 4);
    meet();
    meet();
}

static void client(int fd)
{
    char text[16];
    struct iovec empty = {NULL, 4};
    struct msghdr nothing = {.msg_iov = &empty, .msg_iovlen = 1};
    meet();
    await_bytes(fd, 4);
    /* Only null is checked: any other bad pointer is a fault in the program's own code,
     * where the kernel would say EFAULT. */
    SAY(recv(fd, NULL, 4, MSG_DONTWAIT));
    SAY(send(fd, NULL, 4, 0));
    SAY(sendmsg(fd, &nothing, 0));
    SAY(recvmsg(fd, &nothing, 0));
    SAY(sendmsg(fd, NULL, 0));
    SAY(recvmsg(fd, NULL, 0));
    SAY(poll(NULL, 1, 0));
    SAY(read(fd, NULL, 4));
    SAY(write(fd, NULL, 4));
    SAY(write(fd, text, 0));
    SAY(send(fd, text, 0, 0));
    SAY(read(fd, text, 0));
    SAY(recv(fd, NULL, 0, 0));
    SAY(writev(fd, NULL, 0));
    SAY(readv(fd, NULL, 0));
    struct iovec parts[2] = {{text, (size_t)-1}, {text, 1}};
    SAY(writev(fd, parts, -1));
    SAY(writev(fd, parts, 2000));
    SAY(readv(fd, parts, 2));
    SAY(recv(-1, text, 1, 0));
    SAY(recv(800, text, 1, 0));
    SAY(send(800, text, 1, 0));
    SAY(close(800));
    SAY(dup(800));
    SAY(dup2(800, 5));
    SAY(dup3(fd, fd, 0));
    say("dup2 onto itself %d", dup2(fd, fd) == fd);
    SAY(shutdown(800, SHUT_WR));
    SAY(send(trial_meet[0], "x", 1, 0));
    SAY(recv(trial_meet[0], text, 1, 0));
    SAY(getsockopt(trial_meet[0], SOL_SOCKET, SO_ERROR, text, &(socklen_t){4}));
    SAY(fcntl(fd, 9999));
    SAY(fcntl(fd, F_DUPFD, -1));
    say("what was there is still there: %zd", recv(fd, text, 16, 0));
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
