// about: SO_LINGER of zero: close resets, whether or not something is unread; the peer's calls say ECONNRESET
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    char text[8];
    meet();
    meet();
    SAY(recv(fd, text, 8, 0));
    SAY(recv(fd, text, 8, 0));
    SAY(send(fd, "x", 1, MSG_NOSIGNAL));
}

static void client(int fd)
{
    struct linger none = {.l_onoff = 1, .l_linger = 0};
    SAY(setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none));
    meet();
    SAY(close(fd));
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
