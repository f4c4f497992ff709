// about: MSG_WAITALL over the parts of recvmsg, in recvmmsg and behind a peek, with bytes that come one by one
// upgraded: yes
#include "trial.h"

static void drip(int fd, const char *text)
{
    for (; *text != 0; text++)
        send_all(fd, text, 1);
}

static void server(int fd)
{
    char byte;
    drip(fd, "a message in three parts");
    recv_all(fd, &byte, 1);
    drip(fd, "first.second");
    recv_all(fd, &byte, 1);
    drip(fd, "peeked and taken");
    recv_all(fd, &byte, 1);
    drip(fd, "short");
    MUST(shutdown(fd, SHUT_WR));
    say("end %zd", recv(fd, &byte, 1, 0));
}

static void client(int fd)
{
    char text[64] = {0}, other[64] = {0};
    struct iovec parts[4] = {{text, 1}, {text + 1, 9}, {NULL, 0}, {text + 10, 14}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 4, .msg_flags = -1};
    SAY(recvmsg(fd, &message, MSG_WAITALL));
    say("'%s' flags %#x", text, (unsigned)message.msg_flags);
    send_all(fd, "k", 1);
    struct iovec one = {text, 6}, two = {other, 6};
    struct mmsghdr many[2] = {{.msg_hdr = {.msg_iov = &one, .msg_iovlen = 1}}, {.msg_hdr = {.msg_iov = &two, .msg_iovlen = 1}}};
    SAY(recvmmsg(fd, many, 2, MSG_WAITALL, NULL));
    say("%u %u '%.6s' '%s'", many[0].msg_len, many[1].msg_len, text, other);
    send_all(fd, "k", 1);
    memset(text, 0, sizeof text);
    SAY(recv(fd, text, 1, MSG_WAITALL | MSG_PEEK));
    SAY(recv(fd, other, 7, MSG_WAITALL));
    SAY(recv(fd, other + 7, 9, MSG_WAITALL));
    say("'%s' '%s'", text, other);
    send_all(fd, "k", 1);
    SAY(recvmmsg(fd, many, 2, MSG_WAITALL, NULL)); /* five bytes and the end */
    say("%u %u", many[0].msg_len, many[1].msg_len);
    MUST(close(fd));
}

int main(void)
{
    return run_pair(server, client);
}
