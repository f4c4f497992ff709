// about: MSG_PEEK before every read, from the first message on: what is peeked is what is read, across any change of path
// upgraded: yes
#include "trial.h"

enum { MESSAGES = 400 };

static void server(int fd)
{
    char byte;
    for (uint32_t i = 0; i < MESSAGES; i++) {
        send_all(fd, &i, sizeof i);
        if (i % 7 == 0)
            recv_all(fd, &byte, 1);
    }
    recv_all(fd, &byte, 1);
    warm_up(fd, SERVER);
    say("end %zd", recv(fd, &byte, 1, 0));
}

static void client(int fd)
{
    int differ = 0, wrong = 0, less = 0;
    for (uint32_t i = 0; i < MESSAGES; i++) {
        uint32_t peeked = 0, value = 0;
        unsigned char all[MESSAGES * 4];
        ssize_t seen = MUST(recv(fd, &peeked, sizeof peeked, MSG_PEEK | MSG_WAITALL));
        int pending = 0;
        MUST(ioctl(fd, FIONREAD, &pending));
        less += pending < (int)sizeof value;
        MUST(recv(fd, all, sizeof all, MSG_PEEK | MSG_DONTWAIT));
        recv_all(fd, &value, sizeof value);
        differ += seen == sizeof peeked && (peeked != value || memcmp(all, &value, 4) != 0);
        wrong += value != i;
        if (i % 7 == 0)
            send_all(fd, "a", 1);
    }
    say("peeked otherwise %d, wrong %d, less than a message %d", differ, wrong, less);
    send_all(fd, "b", 1);
    warm_up(fd, CLIENT);
    MUST(close(fd));
}

int main(void)
{
    return run_pair_at("127.0.0.1", "127.0.0.1", true, server, client);
}
