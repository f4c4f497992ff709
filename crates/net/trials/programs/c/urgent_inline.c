// about: urgent data in line: the mark, the byte in its place, and traffic after it
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    char text[16] = {0};
    int one = 1;
    SAY(setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &one, sizeof one));
    meet();
    await_bytes(fd, 9);
    say("at the mark %d", sockatmark(fd));
    ssize_t got = recv(fd, text, sizeof text, 0);
    say("before the mark: %zd %s", got, text);
    say("at the mark %d", sockatmark(fd));
    memset(text, 0, sizeof text);
    got = recv(fd, text, sizeof text, 0);
    say("from the mark on: %zd %s", got, text);
    meet();
    round_trips(fd, SERVER, 200, 64);
}

static void client(int fd)
{
    meet();
    send_all(fd, "normal", 6);
    SAY(send(fd, "!", 1, MSG_OOB));
    send_all(fd, "ly", 2);
    meet();
    round_trips(fd, CLIENT, 200, 64);
}

int main(void)
{
    return run_pair(server, client);
}
