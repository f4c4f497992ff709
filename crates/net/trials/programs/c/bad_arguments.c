// about: null and unreadable buffers, zero lengths, bad descriptors and bad vectors give the kernel's errno
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
    char *nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    meet();
    await_bytes(fd, 4);
    SAY(recv(fd, nowhere, 4, MSG_DONTWAIT));
    SAY(read(fd, nowhere, 4));
    SAY(send(fd, nowhere, 4, 0));
    SAY(write(fd, nowhere, 4));
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
    SAY(writev(fd, (struct iovec *)nowhere, 2));
    SAY(sendmsg(fd, (struct msghdr *)nowhere, 0));
    SAY(recvmsg(fd, (struct msghdr *)nowhere, 0));
    SAY(poll((struct pollfd *)nowhere, 1, 0));
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
