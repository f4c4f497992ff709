// about: TCP_CORK, TCP_NODELAY and MSG_MORE in every order: held bytes come in order and nothing is kept for ever
// upgraded: yes
#include "trial.h"

static void set(int fd, int option, int value)
{
    int back = -1;
    socklen_t length = sizeof back;
    MUST(setsockopt(fd, IPPROTO_TCP, option, &value, sizeof value));
    MUST(getsockopt(fd, IPPROTO_TCP, option, &back, &length));
    if (back != value)
        say("option %d reads %d", option, back);
}

static void server(int fd)
{
    for (int i = 0; i < 5; i++) {
        char text[13] = {0};
        recv_all(fd, text, 12);
        say("%s", text);
        send_all(fd, "k", 1);
    }
    char byte;
    SAY(recv(fd, &byte, 1, 0));
    SAY(recv(fd, &byte, 1, 0));
}

static void client(int fd)
{
    char byte;
    set(fd, TCP_CORK, 1);
    send_all(fd, "cork", 4);
    send_all(fd, "ed, ", 4);
    send_all(fd, "then", 4);
    set(fd, TCP_CORK, 0);
    recv_all(fd, &byte, 1);
    MUST(send(fd, "more", 4, MSG_MORE));
    MUST(send(fd, "more", 4, MSG_MORE));
    MUST(send(fd, "done", 4, 0));
    recv_all(fd, &byte, 1);
    set(fd, TCP_NODELAY, 0);
    for (int i = 0; i < 12; i++)
        send_all(fd, &"Nagle's rule"[i], 1);
    recv_all(fd, &byte, 1);
    set(fd, TCP_CORK, 1);
    set(fd, TCP_NODELAY, 1); /* pushes, cork or not */
    send_all(fd, "corked again", 12);
    set(fd, TCP_CORK, 0);
    recv_all(fd, &byte, 1);
    MUST(send(fd, "never m", 7, MSG_MORE));
    MUST(send(fd, "ore!!", 5, 0));
    recv_all(fd, &byte, 1);
    MUST(send(fd, "z", 1, MSG_MORE)); /* the end pushes it */
    MUST(close(fd));
}

int main(void)
{
    return run_pair(server, client);
}
