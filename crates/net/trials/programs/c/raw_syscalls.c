// about: the same calls through syscall(2), in the middle of traffic through libc
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    for (int i = 0; i < 6; i++) {
        char text[8] = {0};
        send_all(fd, "abcd", 4);
        recv_all(fd, text, 4);
        say("%s", text);
        round_trips(fd, SERVER, 20, 64);
    }
}

static void client(int fd)
{
    char text[8] = {0};
    struct iovec part = {text, 4};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    for (int i = 0; i < 6; i++) {
        struct pollfd entry = {.fd = fd, .events = POLLIN};
        struct timespec wait = {.tv_sec = LONG_MS / 1000};
        await_bytes(fd, 4);
        say("ppoll %ld", syscall(SYS_ppoll, &entry, 1, &wait, NULL, 8));
        memset(text, 0, sizeof text);
        switch (i % 3) {
        case 0:
            say("read %ld %s", syscall(SYS_read, fd, text, 4), text);
            say("write %ld", syscall(SYS_write, fd, "back", 4));
            break;
        case 1:
            say("recvfrom %ld %s", syscall(SYS_recvfrom, fd, text, 4, 0, NULL, NULL), text);
            say("sendto %ld", syscall(SYS_sendto, fd, "back", 4, 0, NULL, 0));
            break;
        default:
            say("recvmsg %ld %s", syscall(SYS_recvmsg, fd, &message, 0), text);
            say("sendmsg %ld", syscall(SYS_sendmsg, fd, &message, 0));
        }
        round_trips(fd, CLIENT, 20, 64);
    }
    say("getpid %d", syscall(SYS_getpid) == getpid());
    SAY(syscall(SYS_close, -1));
}

int main(void)
{
    return run_pair(server, client);
}
