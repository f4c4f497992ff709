// about: half-close both ways: data behind the FIN, writing after it, EOF again and again
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    char text[64] = {0};
    send_all(fd, "last words", 10);
    SAY(shutdown(fd, SHUT_WR));
    SAY(send(fd, "x", 1, MSG_NOSIGNAL));
    meet();
    recv_all(fd, text, 6);
    say("still hears: %s", text);
    say("then %zd", recv(fd, text, 8, 0));
    SAY(shutdown(fd, SHUT_WR));
    meet();
    meet();
}

static void client(int fd)
{
    char text[64] = {0};
    meet();
    recv_all(fd, text, 10);
    say("%s", text);
    SAY(recv(fd, text, 8, 0));
    SAY(recv(fd, text, 8, 0));
    SAY(recv(fd, text, 8, MSG_DONTWAIT));
    SAY(recv(fd, text, 8, MSG_PEEK));
    SAY(read(fd, text, 8));
    say("%zd", send(fd, "answer", 6, 0));
    SAY(shutdown(fd, SHUT_WR));
    meet();
    SAY(shutdown(fd, SHUT_RDWR)); /* both directions have ended: not connected */
    SAY(send(fd, "x", 1, MSG_NOSIGNAL));
    SAY(recv(fd, text, 1, 0));
    SAY(shutdown(fd, 7));
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
