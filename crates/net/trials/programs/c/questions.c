// about: FIONREAD, SIOCOUTQ, TCP_INFO, names, SO_ERROR, SO_TYPE and options on an upgraded connection
// upgraded: yes
#include "trial.h"
#include <linux/sockios.h>

static void ask(int fd, const char *what, int level, int option)
{
    int value = -1;
    socklen_t length = sizeof value;
    say_rc(what, getsockopt(fd, level, option, &value, &length));
    say("  value %d length %u", value, length);
}

static void server(int fd)
{
    meet();
    send_all(fd, "12345678", 8);
    meet();
    meet();
    send_all(fd, "more", 4);
    meet();
    meet();
}

static void client(int fd)
{
    char text[16];
    int pending = -1;
    struct place here = {.length = sizeof here.addr}, there = here;
    SAY(ioctl(fd, FIONREAD, &pending));
    say("pending %d", pending);
    meet();
    await_bytes(fd, 8);
    recv_all(fd, text, 3);
    SAY(ioctl(fd, FIONREAD, &pending));
    say("pending %d", pending);
    meet();
    meet();
    await_bytes(fd, 9);
    recv_all(fd, text, 9);
    SAY(ioctl(fd, FIONREAD, &pending));
    say("pending %d", pending);
    SAY(ioctl(fd, SIOCOUTQ, &pending));
    say("out queue is plausible: %d", pending >= 0 && pending < 1 << 24);
    unsigned char info[256];
    socklen_t length = sizeof info;
    SAY(getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &length));
    say("TCP_INFO has a length: %d, state %d", length >= 104, info[0]);
    SAY(getsockname(fd, (struct sockaddr *)&here.addr, &here.length));
    SAY(getpeername(fd, (struct sockaddr *)&there.addr, &there.length));
    say("families %d %d, lengths %u %u", here.addr.ss_family, there.addr.ss_family, here.length, there.length);
    ask(fd, "SO_ERROR", SOL_SOCKET, SO_ERROR);
    ask(fd, "SO_TYPE", SOL_SOCKET, SO_TYPE);
    ask(fd, "SO_PROTOCOL", SOL_SOCKET, SO_PROTOCOL);
    ask(fd, "SO_DOMAIN", SOL_SOCKET, SO_DOMAIN);
    ask(fd, "SO_ACCEPTCONN", SOL_SOCKET, SO_ACCEPTCONN);
    ask(fd, "TCP_NODELAY", IPPROTO_TCP, TCP_NODELAY);
    int on = 1;
    SAY(setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on));
    ask(fd, "SO_KEEPALIVE", SOL_SOCKET, SO_KEEPALIVE);
    on = 42;
    SAY(setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &on, sizeof on));
    ask(fd, "TCP_KEEPIDLE", IPPROTO_TCP, TCP_KEEPIDLE);
    SAY(setsockopt(fd, SOL_SOCKET, 9999, &on, sizeof on));
    SAY(setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, 1));
    SAY(fcntl(fd, F_GETFD));
    SAY(fcntl(fd, F_SETFD, FD_CLOEXEC));
    SAY(fcntl(fd, F_GETFD));
    SAY(ioctl(fd, TIOCGWINSZ, text));
    SAY(lseek(fd, 0, SEEK_CUR));
    struct stat status;
    SAY(fstat(fd, &status));
    say("a socket: %d, isatty %d", S_ISSOCK(status.st_mode), isatty(fd));
    SAY(listen(fd, 5));
    SAY(accept(fd, NULL, NULL));
    SAY(connect(fd, (struct sockaddr *)&there.addr, there.length));
    SAY(bind(fd, (struct sockaddr *)&here.addr, here.length));
    SAY(pread(fd, text, 4, 0));
    SAY(pwrite(fd, text, 4, 0));
    meet();
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
