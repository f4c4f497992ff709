// about: a socket connected to its own port (a simultaneous open of one): what it sends, it receives
// upgraded: no
#include "trial.h"

static void client(int first)
{
    char text[64];
    MUST(close(first));
    int fd = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
    struct place place = place_of("127.0.0.1", 0);
    MUST(bind(fd, (struct sockaddr *)&place.addr, place.length));
    place.length = sizeof place.addr;
    MUST(getsockname(fd, (struct sockaddr *)&place.addr, &place.length));
    SAY(connect(fd, (struct sockaddr *)&place.addr, place.length));
    int wrong = 0, one = 1;
    MUST(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one));
    for (int i = 0; i < 300; i++) {
        memset(text, i, sizeof text);
        send_all(fd, text, sizeof text);
        await_event(fd, POLLIN);
        memset(text, 0, sizeof text);
        recv_all(fd, text, sizeof text);
        wrong += text[0] != (char)i || text[63] != (char)i;
    }
    say("wrong %d", wrong);
    prove_alone(fd, fd);
    SAY(recv(fd, text, 1, MSG_DONTWAIT));
    SAY(shutdown(fd, SHUT_WR));
    SAY(recv(fd, text, 1, 0));
    SAY(close(fd));
}

static void server(int fd)
{
    char byte;
    say("end %zd", recv(fd, &byte, 1, 0));
}

int main(void)
{
    return run_pair_at("127.0.0.1", "127.0.0.1", true, server, client);
}
