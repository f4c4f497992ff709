// about: SO_PEEK_OFF: refused or honoured, as this kernel does, and what a peek then sees before and behind reads
// upgraded: any
#include "trial.h"

static int offset(int fd)
{
    int value = -99;
    socklen_t length = sizeof value;
    SAY(getsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &value, &length));
    return value;
}

static void peek(int fd, size_t size)
{
    char text[32] = {0};
    ssize_t got = recv(fd, text, size, MSG_PEEK | MSG_DONTWAIT);
    say("peek %zu: %zd '%s', offset %d", size, got, text, offset(fd));
}

static void server(int fd)
{
    meet();
    send_all(fd, "0123456789", 10);
    meet();
    send_all(fd, "abcdef", 6);
    meet();
    meet();
    round_trips(fd, SERVER, 20, 64);
}

static void client(int fd)
{
    char text[16] = {0};
    int at = 2;
    say("at first %d", offset(fd));
    SAY(setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &at, sizeof at));
    meet();
    await_bytes(fd, 10);
    peek(fd, 3);
    peek(fd, 3);
    recv_all(fd, text, 4);
    say("read '%s', offset %d", text, offset(fd));
    peek(fd, 3);
    meet();
    meet();
    await_bytes(fd, 12);
    peek(fd, 20);
    peek(fd, 20);
    at = -1;
    SAY(setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &at, sizeof at));
    peek(fd, 4);
    peek(fd, 4);
    recv_all(fd, text, 12);
    say("read '%.12s'", text);
    meet();
    round_trips(fd, CLIENT, 20, 64);
}

int main(void)
{
    return run_pair(server, client);
}
