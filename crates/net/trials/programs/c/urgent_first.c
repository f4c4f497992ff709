// about: urgent data is the first that a side sends, once the connection could change its path; what follows keeps its order
// upgraded: any
#include "trial.h"

/* The urgent byte is not a part of the stream that the other side counts: a path that begins behind it by that count would be
 * one byte off, and a reader would wait for a byte that never comes. */
#define TOTAL (2u << 20)
#define TALK 200

static void server(int fd)
{
    static unsigned char block[TOTAL];
    char byte;
    for (int i = 0; i < TALK; i++)
        recv_all(fd, &byte, 1); /* it only listens */
    meet();
    MUST(send(fd, "!", 1, MSG_OOB));
    meet();
    for (size_t i = 0; i < TOTAL; i++)
        block[i] = pattern(1, i);
    send_all(fd, block, TOTAL);
    recv_all(fd, &byte, 1);
}

static void client(int fd)
{
    static unsigned char block[TOTAL];
    unsigned wrong = 0;
    char byte = 0;
    for (int i = 0; i < TALK; i++)
        send_all(fd, &byte, 1);
    meet();
    await_event(fd, POLLPRI);
    MUST(recv(fd, &byte, 1, MSG_OOB));
    say("urgent %c", byte);
    meet();
    recv_all(fd, block, TOTAL);
    for (size_t i = 0; i < TOTAL; i++)
        wrong += block[i] != pattern(1, i);
    say("wrong %u", wrong);
    send_all(fd, &byte, 1);
}

int main(void)
{
    return run_pair_at("127.0.0.1", "127.0.0.1", true, server, client);
}
