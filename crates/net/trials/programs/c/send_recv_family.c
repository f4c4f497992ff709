// about: every send call reaches every receive call, with the counts and bytes of TCP
// upgraded: yes
// variants: plain fortified
#include "trial.h"

static ssize_t send_by(int fd, int how, char *text, size_t length)
{
    struct iovec parts[3] = {{text, 1}, {text + 1, 0}, {text + 1, length - 1}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
    struct mmsghdr many[2] = {{.msg_hdr = {.msg_iov = parts, .msg_iovlen = 2}},
                              {.msg_hdr = {.msg_iov = parts + 2, .msg_iovlen = 1}}};
    switch (how) {
    case 0: return send(fd, text, length, 0);
    case 1: return write(fd, text, length);
    case 2: return writev(fd, parts, 3);
    case 3: return sendto(fd, text, length, 0, NULL, 0);
    case 4: return sendmsg(fd, &message, MSG_NOSIGNAL);
    case 5: {
        int sent = sendmmsg(fd, many, 2, 0);
        return sent == 2 ? (ssize_t)(many[0].msg_len + many[1].msg_len) : -1;
    }
    default: return pwritev2(fd, parts, 3, -1, 0);
    }
}

static ssize_t recv_by(int fd, int how, char *text, size_t length)
{
    struct iovec parts[3] = {{text, 2}, {text + 2, 0}, {text + 2, length - 2}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
    struct mmsghdr many[1] = {{.msg_hdr = {.msg_iov = parts, .msg_iovlen = 3}}};
    switch (how) {
    case 0: return recv(fd, text, length, 0);
    case 1: return read(fd, text, length);
    case 2: return readv(fd, parts, 3);
    case 3: {
        struct place from = {.length = sizeof from.addr};
        ssize_t got = recvfrom(fd, text, length, 0, (struct sockaddr *)&from.addr, &from.length);
        say("recvfrom leaves an address of %u bytes", from.length);
        return got;
    }
    case 4: {
        char control[64];
        struct sockaddr_storage name;
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        message.msg_name = &name;
        message.msg_namelen = sizeof name;
        ssize_t got = recvmsg(fd, &message, 0);
        say("recvmsg: flags %#x, control %zu, name %u", (unsigned)message.msg_flags,
            message.msg_controllen, message.msg_namelen);
        return got;
    }
    case 5: return recvmmsg(fd, many, 1, 0, NULL) == 1 ? (ssize_t)many[0].msg_len : -1;
    default: return preadv2(fd, parts, 3, -1, 0);
    }
}

static const char *const sends[] = {"send", "write", "writev", "sendto", "sendmsg", "sendmmsg", "pwritev2"};
static const char *const recvs[] = {"recv", "read", "readv", "recvfrom", "recvmsg", "recvmmsg", "preadv2"};

static void server(int fd)
{
    for (int how = 0; how < 7; how++)
        for (int their = 0; their < 7; their++) {
            char text[64];
            snprintf(text, sizeof text, "%s to %s", sends[how], recvs[their]);
            say("%s: %zd", text, send_by(fd, how, text, strlen(text)));
            meet();
        }
}

static void client(int fd)
{
    for (int their = 0; their < 7; their++)
        for (int how = 0; how < 7; how++) {
            char text[128] = {0};
            char expected[64];
            snprintf(expected, sizeof expected, "%s to %s", sends[their], recvs[how]);
            await_bytes(fd, (int)strlen(expected));
            ssize_t got = recv_by(fd, how, text, sizeof text - 1);
            say("%s: %zd '%s'", recvs[how], got, text);
            meet();
        }
}

int main(void)
{
    return run_pair(server, client);
}
