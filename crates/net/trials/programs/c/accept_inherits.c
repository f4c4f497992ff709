// about: what an accepted connection has from its listener and what it has not: options, O_NONBLOCK, close-on-exec, owner, accept4 flags
// upgraded: yes
#include "trial.h"

static int asked(int fd, int level, int option)
{
    int value[4] = {-1};
    socklen_t length = sizeof value;
    MUST(getsockopt(fd, level, option, value, &length));
    return value[0];
}

static void show(int fd)
{
    struct linger linger = {0};
    struct timeval wait = {0};
    socklen_t length = sizeof linger;
    MUST(getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &length));
    length = sizeof wait;
    MUST(getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, &length));
    say("nonblock %d, cloexec %d, owner %d", (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0, fcntl(fd, F_GETFD),
        fcntl(fd, F_GETOWN) != 0);
    say("keepalive %d, idle %d, nodelay %d, linger %d %d, timeout %ld, listening %d, defer %d", asked(fd, SOL_SOCKET, SO_KEEPALIVE),
        asked(fd, IPPROTO_TCP, TCP_KEEPIDLE), asked(fd, IPPROTO_TCP, TCP_NODELAY), linger.l_onoff, linger.l_linger,
        (long)wait.tv_sec, asked(fd, SOL_SOCKET, SO_ACCEPTCONN), asked(fd, IPPROTO_TCP, TCP_USER_TIMEOUT));
}

static void server(int fd)
{
    static const int flags[] = {0, SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_NONBLOCK | SOCK_CLOEXEC};
    int listener = open_door(), on = 1, seconds = 77;
    struct linger linger = {.l_onoff = 1, .l_linger = 9};
    struct timeval wait = {.tv_sec = 8};
    MUST(setsockopt(listener, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on));
    MUST(setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
    MUST(setsockopt(listener, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds));
    MUST(setsockopt(listener, IPPROTO_TCP, TCP_USER_TIMEOUT, &seconds, sizeof seconds));
    MUST(setsockopt(listener, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
    MUST(setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait));
    MUST(fcntl(listener, F_SETFL, O_RDWR | O_NONBLOCK));
    MUST(fcntl(listener, F_SETOWN, getpid()));
    show(listener);
    meet(); /* the options are those of the hand-shake */
    for (int i = 0; i < 4; i++) {
        await_event(listener, POLLIN);
        int other = (int)MUST(accept4(listener, NULL, NULL, flags[i]));
        warm_up(other, SERVER);
        show(other);
        MUST(close(other));
    }
    SAY(accept4(listener, NULL, NULL, O_APPEND));
    SAY(accept4(listener, NULL, NULL, 0));
    char byte;
    say("end %zd", recv(fd, &byte, 1, 0));
}

static void client(int fd)
{
    int port = find_door();
    char byte;
    meet();
    for (int i = 0; i < 4; i++) {
        int other = warm_client(port);
        say("end %zd", recv(other, &byte, 1, 0));
        MUST(close(other));
    }
    MUST(close(fd));
}

int main(void)
{
    return run_pair(server, client);
}
