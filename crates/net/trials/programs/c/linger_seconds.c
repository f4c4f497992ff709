// about: SO_LINGER of some seconds: close delivers what was sent, then the end
// upgraded: yes
#include "trial.h"

#define SIZE 6000

static void server(int fd)
{
    static char block[SIZE];
    meet();
    recv_all(fd, block, SIZE);
    say("first %c, last %c, then %zd", block[0], block[SIZE - 1], recv(fd, block, 1, 0));
}

static void client(int fd)
{
    static char block[SIZE];
    struct linger some = {.l_onoff = 1, .l_linger = 10};
    SAY(setsockopt(fd, SOL_SOCKET, SO_LINGER, &some, sizeof some));
    memset(block, 'l', SIZE);
    send_all(fd, block, SIZE);
    meet();
    SAY(close(fd));
}

int main(void)
{
    return run_pair(server, client);
}
