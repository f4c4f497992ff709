// about: getsockopt and setsockopt with short, long, zero and negative lengths, null pointers, unknown levels and names
// upgraded: yes
// flags: -Wno-nonnull
#include "trial.h"

static void get(int fd, const char *what, int level, int option, socklen_t room)
{
    unsigned char value[32];
    memset(value, 0xee, sizeof value);
    socklen_t length = room;
    long rc = getsockopt(fd, level, option, value, &length);
    say_rc(what, rc);
    if (rc == 0)
        say("  length %d of %d, bytes %02x %02x %02x %02x %02x", (int)length, (int)room, value[0], value[1], value[2],
            value[3], value[4]);
}

static void server(int fd)
{
    meet();
    round_trips(fd, SERVER, 10, 64);
    char byte;
    say("end %zd", recv(fd, &byte, 1, 0));
}

static void client(int fd)
{
    static const int rooms[] = {0, 1, 2, 3, 4, 8, -1};
    int on = 1;
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        get(fd, "SO_ERROR", SOL_SOCKET, SO_ERROR, (socklen_t)rooms[i]);
        get(fd, "SO_TYPE", SOL_SOCKET, SO_TYPE, (socklen_t)rooms[i]);
        get(fd, "TCP_NODELAY", IPPROTO_TCP, TCP_NODELAY, (socklen_t)rooms[i]);
        get(fd, "SO_LINGER", SOL_SOCKET, SO_LINGER, (socklen_t)rooms[i]);
        get(fd, "SO_RCVTIMEO", SOL_SOCKET, SO_RCVTIMEO, (socklen_t)rooms[i]);
    }
    get(fd, "level 77", 77, SO_ERROR, 4);
    get(fd, "level -1", -1, SO_ERROR, 4);
    get(fd, "option 9999", SOL_SOCKET, 9999, 4);
    get(fd, "TCP option 9999", IPPROTO_TCP, 9999, 4);
    get(fd, "UDP level", IPPROTO_UDP, 1, 4);
    SAY(getsockopt(fd, SOL_SOCKET, SO_ERROR, &on, NULL));
    SAY(setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, 0));
    SAY(setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, 3));
    SAY(setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, 8));
    SAY(setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, NULL, 4));
    SAY(setsockopt(fd, SOL_SOCKET, SO_LINGER, &on, 4));
    SAY(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &on, 4));
    SAY(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &on, 1));
    SAY(setsockopt(fd, SOL_SOCKET, SO_TYPE, &on, 4));
    SAY(setsockopt(fd, SOL_SOCKET, SO_ERROR, &on, 4));
    SAY(setsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, 4));
    SAY(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, 1));
    SAY(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, NULL, 4));
    SAY(setsockopt(fd, IPPROTO_TCP, TCP_INFO, &on, 4));
    SAY(setsockopt(fd, IPPROTO_TCP, 9999, &on, 4));
    SAY(setsockopt(fd, 77, 1, &on, 4));
    SAY(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, 4));
    SAY(setsockopt(trial_meet[0], SOL_SOCKET, SO_KEEPALIVE, &on, 4));
    meet();
    round_trips(fd, CLIENT, 10, 64);
}

int main(void)
{
    return run_pair(server, client);
}
