// about: errno is left alone by calls that succeed
// upgraded: yes
#include "trial.h"

#define KEPT(call)                                                            \
    do {                                                                      \
        errno = ENOTUNIQ;                                                     \
        long rc_ = (long)(call);                                              \
        say("%s: %s, errno %s", #call, rc_ >= 0 ? "ok" : "failed", strerrorname_np(errno)); \
    } while (0)

static void server(int fd)
{
    round_trips(fd, SERVER, 1, 64);
    send_all(fd, "0123456789", 10);
    meet();
    meet();
}

static void client(int fd)
{
    char text[64];
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    struct epoll_event event = {.events = EPOLLIN};
    fd_set in;
    round_trips(fd, CLIENT, 1, 64);
    meet();
    await_bytes(fd, 10);
    FD_ZERO(&in);
    FD_SET(fd, &in);
    int set, pending;
    KEPT(set = epoll_create1(0));
    KEPT(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    KEPT(epoll_wait(set, &event, 1, -1));
    KEPT(poll(&entry, 1, -1));
    KEPT(select(fd + 1, &in, NULL, NULL, NULL));
    KEPT(ioctl(fd, FIONREAD, &pending));
    KEPT(recv(fd, text, 1, 0));
    KEPT(read(fd, text, 1));
    KEPT(recv(fd, text, 1, MSG_PEEK));
    KEPT(recv(fd, text, 1, MSG_DONTWAIT));
    struct iovec part = {text, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    KEPT(recvmsg(fd, &message, 0));
    KEPT(readv(fd, &part, 1));
    KEPT(send(fd, "x", 1, 0));
    KEPT(write(fd, "x", 1));
    KEPT(writev(fd, &part, 1));
    KEPT(sendmsg(fd, &message, 0));
    int copy;
    KEPT(copy = dup(fd));
    KEPT(close(copy));
    KEPT(fcntl(fd, F_GETFL));
    KEPT(fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK));
    KEPT(close(set));
    KEPT(shutdown(fd, SHUT_WR));
    KEPT(close(fd));
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
