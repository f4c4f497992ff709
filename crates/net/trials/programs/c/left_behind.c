// about: 200 KB in small pieces, then the end of the process, before the peer has read a byte
// upgraded: yes
#include "trial.h"

enum { TOTAL = 200000 };

static void server(int fd)
{
    static unsigned char block[7000];
    meet();
    char byte;
    if (read(trial_meet[0], &byte, 1) != 0) /* the client's process has ended */
        give_up("more than a meeting");
    uint64_t total = 0, wrong = 0;
    ssize_t got;
    while ((got = recv(fd, block, sizeof block, 0)) > 0)
        for (ssize_t i = 0; i < got; i++, total++)
            wrong += block[i] != pattern(6, total);
    say("%llu bytes, wrong %llu, end %zd", (unsigned long long)total, (unsigned long long)wrong, got);
}

static void client(int fd)
{
    unsigned char piece[100];
    meet();
    for (uint64_t at = 0; at < TOTAL; at += sizeof piece) {
        for (uint64_t i = 0; i < sizeof piece; i++)
            piece[i] = pattern(6, at + i);
        send_all(fd, piece, sizeof piece);
    }
    say("all sent");
}

int main(void)
{
    return run_pair(server, client);
}
