// about: control messages on TCP: those that sendmsg ignores and refuses, and TCP_INQ on the receiving side
// upgraded: any
#include "trial.h"
#ifndef TCP_INQ
#define TCP_INQ 36
#endif

static ssize_t send_with(int fd, int level, int type, const void *data, size_t size, size_t claimed)
{
    char control[CMSG_SPACE(64)] = {0};
    struct iovec part = {(char *)"byte", 4};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = CMSG_SPACE(size)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = level;
    header->cmsg_type = type;
    header->cmsg_len = claimed != 0 ? claimed : CMSG_LEN(size);
    memcpy(CMSG_DATA(header), data, size);
    return sendmsg(fd, &message, MSG_NOSIGNAL);
}

static void receive(int fd, const char *what, size_t room)
{
    char text[16], control[256];
    struct iovec part = {text, 4};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = room};
    ssize_t got = recvmsg(fd, &message, MSG_WAITALL);
    say("%s: %zd, flags %#x, control %d", what, got, (unsigned)message.msg_flags, message.msg_controllen > 0);
    for (struct cmsghdr *at = CMSG_FIRSTHDR(&message); at != NULL; at = CMSG_NXTHDR(&message, at)) {
        say("  level %d type %d", at->cmsg_level, at->cmsg_type);
        if (at->cmsg_level == IPPROTO_TCP && at->cmsg_type == TCP_INQ)
            say("  left %d", *(int *)(void *)CMSG_DATA(at));
    }
}

static void server(int fd)
{
    int number = fd, odd = 5;
    SAY(send_with(fd, SOL_SOCKET, SCM_RIGHTS, &number, sizeof number, 0));
    SAY(send_with(fd, SOL_SOCKET, 99, &odd, sizeof odd, 0));
    SAY(send_with(fd, IPPROTO_IP, IP_TTL, &odd, sizeof odd, 0));
    SAY(send_with(fd, IPPROTO_TCP, 7, &odd, sizeof odd, 0));
    SAY(send_with(fd, SOL_SOCKET, SCM_RIGHTS, &number, sizeof number, 3));
    meet();
    for (int i = 0; i < 2; i++) {
        meet();
        send_all(fd, "datamore", 8);
        meet();
    }
    round_trips(fd, SERVER, 20, 64);
}

static void client(int fd)
{
    int on = 1, off = 0;
    char text[64];
    meet();
    int pending = 0;
    MUST(ioctl(fd, FIONREAD, &pending));
    say("arrived %d", pending);
    recv_all(fd, text, (size_t)pending);
    meet();
    await_bytes(fd, 8);
    receive(fd, "plain", 256);
    receive(fd, "plain", 0);
    SAY(setsockopt(fd, IPPROTO_TCP, TCP_INQ, &on, sizeof on));
    meet();
    meet();
    await_bytes(fd, 8);
    receive(fd, "counted", 256);
    receive(fd, "counted", 0);
    meet();
    SAY(setsockopt(fd, IPPROTO_TCP, TCP_INQ, &off, sizeof off));
    round_trips(fd, CLIENT, 20, 64);
}

int main(void)
{
    return run_pair(server, client);
}
