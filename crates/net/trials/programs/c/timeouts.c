// about: SO_RCVTIMEO and SO_SNDTIMEO end blocking calls with EAGAIN or a partial count, and can be read back
// upgraded: yes
#include "trial.h"

static void set_timeout(int fd, int option, int ms)
{
    struct timeval wait = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    MUST(setsockopt(fd, SOL_SOCKET, option, &wait, sizeof wait));
    socklen_t length = sizeof wait;
    memset(&wait, 0xff, sizeof wait);
    MUST(getsockopt(fd, SOL_SOCKET, option, &wait, &length));
    say("reads back %ld.%03ld", (long)wait.tv_sec, (long)wait.tv_usec / 1000);
}

static void server(int fd)
{
    static char block[16 << 20];
    meet();
    send_all(fd, "part", 4);
    meet();
    set_timeout(fd, SO_SNDTIMEO, 80);
    ssize_t sent = send(fd, block, sizeof block, 0); /* nobody reads */
    say("partial send: %d", sent > 0 && sent < (ssize_t)sizeof block);
    while ((sent = send(fd, block, sizeof block, 0)) > 0)
        ; /* the kernel may find a little more room */
    say_rc("then", sent);
    SAY(write(fd, block, sizeof block));
    meet();
    meet();
}

static void client(int fd)
{
    char text[64];
    set_timeout(fd, SO_RCVTIMEO, 80);
    SAY(recv(fd, text, 64, 0));
    SAY(read(fd, text, 64));
    SAY(recv(fd, text, 64, MSG_PEEK));
    SAY(recv(fd, text, 64, MSG_WAITALL));
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    say("poll does not mind %d", poll(&entry, 1, SHORT_MS));
    meet();
    SAY(recv(fd, text, 64, MSG_WAITALL)); /* four bytes, then the time is up */
    set_timeout(fd, SO_RCVTIMEO, 0);
    meet();
    meet();
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
