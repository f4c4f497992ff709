// about: O_NONBLOCK set and cleared by raw system calls holds for the next recv and send
// upgraded: yes
#include "trial.h"

#define BULK (64 << 20)

static void set_unseen(int fd, long flags)
{
    if (witness_call(SYS_fcntl, fd, F_SETFL, flags, 0, 0) < 0)
        give_up("fcntl");
}

/* A call that finds the flag cleared unseen may be refused a few times, not for ever. */
static ssize_t received_at_last(int fd, char *text)
{
    ssize_t got = -1;
    for (int i = 0; i < 64 && got < 0; i++)
        got = recv(fd, text, 4, 0);
    return got;
}

static void server(int fd)
{
    static char block[1 << 16];
    for (int i = 0; i < 3; i++) {
        meet();
        poll(NULL, 0, SHORT_MS); /* lets the other side go to sleep */
        send_all(fd, "data", 4);
    }
    meet();
    for (int i = 0; i < BULK / (int)sizeof block; i++)
        recv_all(fd, block, sizeof block);
    round_trips(fd, SERVER, 50, 64);
    prove(fd, SERVER);
}

static void client(int fd)
{
    static char block[1 << 16];
    char text[8] = {0};
    for (int i = 0; i < 3; i++) {
        SAY(recv(fd, text, 4, MSG_DONTWAIT));
        set_unseen(fd, O_RDWR | O_NONBLOCK);
        SAY(recv(fd, text, 4, 0));
        SAY(read(fd, text, 4));
        set_unseen(fd, O_RDWR);
        meet();
        say("%d: %zd %s", i, received_at_last(fd, text), text);
    }
    set_unseen(fd, O_RDWR | O_NONBLOCK);
    long long total = 0;
    for (ssize_t sent; (sent = send(fd, block, sizeof block, 0)) > 0;)
        total += sent;
    say("errno %s", strerrorname_np(errno));
    set_unseen(fd, O_RDWR);
    meet();
    while (total < BULK) {
        long long left = BULK - total;
        ssize_t sent = -1;
        for (int i = 0; i < 64 && sent < 0; i++)
            sent = send(fd, block, left < (long long)sizeof block ? (size_t)left : sizeof block, 0);
        total += MUST(sent);
    }
    round_trips(fd, CLIENT, 50, 64);
    prove(fd, CLIENT);
}

int main(void)
{
    return run_pair(server, client);
}
