// about: shutdown in one thread ends a send that is blocked because the peer does not read
// upgraded: yes
#include "trial.h"

static int line;

static void fill(void)
{
    static char block[8 << 20];
    ssize_t sent = send(line, block, sizeof block, MSG_NOSIGNAL);
    say("in part, or EPIPE: %d", (sent > 0 && sent < (ssize_t)sizeof block) || (sent == -1 && errno == EPIPE));
    SAY(send(line, block, 1, MSG_NOSIGNAL));
}

static void server(int fd)
{
    meet();
    say("then the end, after some bytes: %d", recv_to_end(fd) > 0);
    send_all(fd, "still", 5);
    meet();
}

static void client(int fd)
{
    struct sleeper sleeper;
    char text[8] = {0};
    line = fd;
    start_sleeper(&sleeper, fill);
    long rc = shutdown(fd, SHUT_WR);
    join_sleeper(&sleeper);
    say("shutdown %ld", rc);
    meet();
    recv_all(fd, text, 5);
    say("%s", text);
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
