// about: vectors with empty and null parts, no parts at all, counts of -1 and above IOV_MAX, lengths below zero, in every vector call
// upgraded: yes
// variants: plain
// flags: -Wno-nonnull -Wno-stringop-overflow -Wno-stringop-overread
#include "trial.h"
#include <limits.h>

static char text[64];
static struct iovec sparse[7] = {{NULL, 0}, {text, 0}, {text, 2}, {NULL, 0}, {text + 2, 3}, {text + 5, 0}, {NULL, 0}};

static void server(int fd)
{
    struct msghdr message = {.msg_iov = sparse, .msg_iovlen = 7};
    struct mmsghdr many[2] = {{.msg_hdr = message}, {.msg_hdr = message}};
    memcpy(text, "abcde", 5);
    SAY(writev(fd, sparse, 7));
    SAY(sendmsg(fd, &message, 0));
    SAY(sendmmsg(fd, many, 2, 0));
    SAY(pwritev2(fd, sparse, 7, -1, 0));
    meet();
    char byte;
    say("end %zd", recv(fd, &byte, 1, 0));
}

static void wrong(int fd, const char *what, struct iovec *parts, size_t count)
{
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
    struct mmsghdr many = {.msg_hdr = message};
    say("[%s]", what);
    SAY(readv(fd, parts, (int)count));
    SAY(writev(fd, parts, (int)count));
    SAY(preadv2(fd, parts, (int)count, -1, 0));
    SAY(pwritev2(fd, parts, (int)count, -1, 0));
    SAY(recvmsg(fd, &message, MSG_DONTWAIT));
    SAY(sendmsg(fd, &message, 0));
    SAY(recvmmsg(fd, &many, 1, MSG_DONTWAIT, NULL));
    SAY(sendmmsg(fd, &many, 1, 0));
}

static void client(int fd)
{
    static struct iovec thousands[IOV_MAX + 1];
    struct msghdr message = {.msg_iov = sparse, .msg_iovlen = 7};
    struct mmsghdr many = {.msg_hdr = message};
    meet();
    await_bytes(fd, 25);
    SAY(readv(fd, sparse, 7));
    say("%.5s", text);
    SAY(recvmsg(fd, &message, 0));
    say("%.5s", text);
    SAY(recvmmsg(fd, &many, 1, 0, NULL));
    say("%.5s, %u", text, many.msg_len);
    SAY(preadv2(fd, sparse, 7, -1, 0));
    say("%.5s", text);
    SAY(recvmsg(fd, &message, MSG_PEEK));
    struct iovec negative[2] = {{text, 1}, {text, (size_t)-1}};
    for (int i = 0; i <= IOV_MAX; i++)
        thousands[i] = (struct iovec){text, 1};
    wrong(fd, "count -1", sparse, (size_t)-1);
    wrong(fd, "more than IOV_MAX", thousands, IOV_MAX + 1);
    wrong(fd, "negative length", negative, 2);
    wrong(fd, "null part with a length", &(struct iovec){NULL, 3}, 1);
    memset(text, 0, sizeof text);
    recv_all(fd, text, 5);
    say("%s is still there", text);
    MUST(shutdown(fd, SHUT_WR));
}

int main(void)
{
    return run_pair(server, client);
}
