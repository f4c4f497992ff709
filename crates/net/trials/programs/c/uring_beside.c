// about: raw io_uring sends and receives on a connection that libc calls have not touched: it stays on TCP
// upgraded: no
#include "uring.h"

static void server(int fd)
{
    char text[64] = {0};
    for (int i = 0; i < 100; i++) {
        recv_all(fd, text, 64);
        send_all(fd, text, 64);
    }
    prove(fd, SERVER);
    recv_all(fd, text, 5);
    say("%.5s", text);
    send_all(fd, "after", 5);
    say("end %zd", recv(fd, text, 1, 0));
}

static void client(int fd)
{
    struct uring ring = uring_begin(0);
    char text[64] = {0};
    int wrong = 0;
    for (int i = 0; i < 100; i++) {
        memset(text, i, sizeof text);
        wrong += uring_move(&ring, IORING_OP_SEND, fd, text, sizeof text) != sizeof text;
        uring_recv_all(&ring, fd, text, sizeof text);
        wrong += text[0] != (char)i;
    }
    say("wrong %d", wrong);
    prove(fd, CLIENT); /* libc's calls may follow: their totals tell that others came before */
    send_all(fd, "libc!", 5);
    memset(text, 0, sizeof text);
    say("%d %s", uring_move(&ring, IORING_OP_RECV, fd, text, 5), text);
    int file = (int)MUST(open("uring", O_RDWR | O_CREAT | O_TRUNC, 0600));
    say("file %d", uring_move(&ring, IORING_OP_WRITE, file, text, 5));
    MUST(close(file));
    MUST(close(ring.fd));
    MUST(close(fd));
}

int main(void)
{
    return run_pair_at("127.0.0.1", "127.0.0.1", true, server, client);
}
