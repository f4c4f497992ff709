// about: a ring that system calls past libc make before a connection has earned its channel: both sides stay on TCP
// upgraded: no
#include "uring.h"

static struct uring ring;

static void server(int fd)
{
    char text[8] = {0};
    for (int i = 0; i < 50; i++) {
        recv_all(fd, text, 4);
        send_all(fd, text, 4);
    }
    prove(fd, SERVER);
}

static void client(int fd)
{
    char text[8] = {0};
    for (int i = 0; i < 50; i++) {
        uring_move(&ring, IORING_OP_SEND, fd, "ring", 4);
        recv_all(fd, text, 4);
    }
    say("%s", text);
    prove(fd, CLIENT);
}

int main(void)
{
    uring_unseen = true;
    ring = uring_begin(0);
    return run_pair(server, client);
}
