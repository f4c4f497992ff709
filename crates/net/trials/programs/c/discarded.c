// about: MSG_TRUNC in every call that takes flags: discards without a copy, beside MSG_PEEK, MSG_WAITALL and MSG_DONTWAIT, beyond what is there
// upgraded: yes
// flags: -Wno-nonnull -Wno-stringop-overflow
// variants: plain
#include "trial.h"

static void rest(int fd, const char *when)
{
    char text[64] = {0};
    ssize_t got = recv(fd, text, sizeof text - 1, MSG_PEEK | MSG_DONTWAIT);
    say("%s: %zd '%s'", when, got, text);
}

static void server(int fd)
{
    send_all(fd, "one, two, three, four, five, six", 32);
    meet();
    meet();
    send_all(fd, "tail", 4);
    MUST(shutdown(fd, SHUT_WR));
    meet();
}

static void client(int fd)
{
    char text[64] = "kept";
    struct iovec parts[2] = {{text, 3}, {text + 3, 2}}, null = {NULL, 6};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2, .msg_flags = -1};
    struct mmsghdr many = {.msg_hdr = {.msg_iov = &null, .msg_iovlen = 1}};
    meet();
    await_bytes(fd, 32);
    SAY(recv(fd, text, 5, MSG_TRUNC));
    rest(fd, text);
    SAY(recv(fd, NULL, 2, MSG_TRUNC | MSG_DONTWAIT));
    rest(fd, "more");
    SAY(recvmsg(fd, &message, MSG_TRUNC | MSG_WAITALL));
    say("flags %#x, text %s", (unsigned)message.msg_flags, text);
    rest(fd, "more");
    SAY(recvmmsg(fd, &many, 1, MSG_TRUNC, NULL));
    say("length %u", many.msg_len);
    rest(fd, "more");
    SAY(recvfrom(fd, text, 4, MSG_TRUNC | MSG_PEEK, NULL, NULL));
    rest(fd, "peek takes none");
    SAY(recv(fd, NULL, 1000, MSG_TRUNC));
    rest(fd, "all gone");
    SAY(recv(fd, NULL, 1000, MSG_TRUNC | MSG_DONTWAIT));
    meet();
    meet();
    await_event(fd, POLLRDHUP);
    SAY(recv(fd, NULL, 1000, MSG_TRUNC | MSG_WAITALL));
    SAY(recv(fd, NULL, 1000, MSG_TRUNC | MSG_WAITALL));
}

int main(void)
{
    return run_pair(server, client);
}
