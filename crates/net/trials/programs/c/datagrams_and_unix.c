// about: UDP, AF_UNIX stream, datagram and seqpacket sockets, pipes and files behave as without the library
// upgraded: any, for it has no TCP connection
#include "trial.h"

static void both_ways(const char *what, int one, int two)
{
    char text[32] = {0};
    say("%s: send %zd", what, send(one, "hello", 5, 0));
    ssize_t peeked = recv(two, text, 2, MSG_PEEK);
    say("  peek %zd, recv %zd %s", peeked, recv(two, text, 2, 0), text);
    int pending = -1;
    MUST(ioctl(two, FIONREAD, &pending));
    say("  pending %d", pending);
    struct pollfd entry = {.fd = two, .events = POLLIN | POLLOUT};
    int rc = poll(&entry, 1, 0);
    say("  poll %d %#x", rc, (unsigned)entry.revents);
    struct iovec parts[2] = {{"two ", 4}, {"parts", 5}};
    say("  writev %zd", writev(two, parts, 2));
    struct msghdr message = {.msg_iov = &(struct iovec){text, sizeof text}, .msg_iovlen = 1};
    ssize_t got = recvmsg(one, &message, 0);
    say("  recvmsg %zd %#x", got, (unsigned)message.msg_flags);
    SAY(shutdown(one, SHUT_WR));
    MUST(close(one));
    SAY(recv(two, text, 1, MSG_DONTWAIT));
    SAY(send(two, "x", 1, MSG_NOSIGNAL));
    MUST(close(two));
}

int main(void)
{
    int pair[2];
    static const int kinds[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
    for (int i = 0; i < 3; i++) {
        MUST(socketpair(AF_UNIX, kinds[i], 0, pair));
        both_ways("unix", pair[0], pair[1]);
    }
    struct place place[2];
    for (int i = 0; i < 2; i++) {
        place[i] = place_of("127.0.0.1", 0);
        pair[i] = (int)MUST(socket(AF_INET, SOCK_DGRAM, 0));
        MUST(bind(pair[i], (struct sockaddr *)&place[i].addr, place[i].length));
        MUST(getsockname(pair[i], (struct sockaddr *)&place[i].addr, &place[i].length));
    }
    MUST(connect(pair[0], (struct sockaddr *)&place[1].addr, place[1].length));
    MUST(connect(pair[1], (struct sockaddr *)&place[0].addr, place[0].length));
    for (int i = 0; i < 100; i++) {
        char text[16] = {0};
        MUST(sendto(pair[0], "datagram", 8, 0, NULL, 0));
        struct place from = {.length = sizeof from.addr};
        ssize_t got = recvfrom(pair[1], text, 4, MSG_TRUNC, (struct sockaddr *)&from.addr, &from.length);
        if (i == 99)
            say("udp: %zd %s, from family %d", got, text, from.addr.ss_family);
    }
    struct mmsghdr many[3];
    struct iovec part = {"many", 4};
    for (int i = 0; i < 3; i++)
        many[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
    SAY(sendmmsg(pair[0], many, 3, 0));
    char texts[3][8] = {{0}};
    struct iovec into[3];
    for (int i = 0; i < 3; i++) {
        into[i] = (struct iovec){texts[i], 7};
        many[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &into[i], .msg_iovlen = 1}};
    }
    SAY(recvmmsg(pair[1], many, 3, MSG_DONTWAIT, NULL));
    say("%s %s %s", texts[0], texts[1], texts[2]);
    int file = (int)MUST(memfd_create("file", 0));
    SAY(recv(file, texts, 1, 0));
    SAY(send(file, texts, 1, 0));
    SAY(write(file, "content", 7));
    SAY(preadv2(file, into, 1, 0, 0));
    SAY(pwritev2(file, into, 1, 3, 0));
    return 0;
}
