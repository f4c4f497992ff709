// about: MSG_TRUNC drops as many bytes as are asked for, far more than a page: what is there, or all that come with MSG_WAITALL
// upgraded: yes
// flags: -Wno-nonnull -Wno-stringop-overflow
// variants: plain
#include "trial.h"

#define THERE 60000
#define BULK 1000000

static char block[BULK];

static void server(int fd)
{
    for (int i = 0; i < BULK; i++)
        block[i] = (char)pattern(1, (uint64_t)i);
    send_all(fd, block, THERE);
    meet();
    send_all(fd, block, 5);
    meet();
    send_all(fd, block, BULK);
    send_all(fd, block, BULK);
    send_all(fd, "next", 4);
    MUST(shutdown(fd, SHUT_WR));
    meet();
}

static void client(int fd)
{
    char text[8] = {0};
    struct iovec parts[3] = {{NULL, 100000}, {NULL, 0}, {NULL, BULK - 100000}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
    await_bytes(fd, THERE);
    SAY(recv(fd, NULL, THERE, MSG_TRUNC | MSG_PEEK));
    SAY(recv(fd, NULL, THERE / 2, MSG_TRUNC | MSG_PEEK));
    SAY(recv(fd, NULL, 2 * THERE, MSG_TRUNC | MSG_PEEK));
    SAY(recv(fd, NULL, THERE - 20000, MSG_TRUNC));
    SAY(recv(fd, NULL, THERE, MSG_TRUNC));
    SAY(recv(fd, NULL, THERE, MSG_TRUNC | MSG_DONTWAIT));
    meet();
    await_bytes(fd, 5);
    SAY(recv(fd, NULL, THERE, MSG_TRUNC));
    meet();
    SAY(recv(fd, NULL, BULK, MSG_TRUNC | MSG_WAITALL));
    SAY(recvmsg(fd, &message, MSG_TRUNC | MSG_WAITALL));
    recv_all(fd, text, 4);
    say("%s", text);
    SAY(recv(fd, NULL, BULK, MSG_TRUNC | MSG_WAITALL));
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
