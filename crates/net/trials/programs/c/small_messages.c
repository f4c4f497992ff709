// about: 30,000 small requests pipelined in changing depth, every answer checked
// upgraded: yes
#include "trial.h"

#define REQUESTS 30000u

static void server(int fd)
{
    uint32_t batch[256];
    uint64_t sum = 0;
    for (uint32_t done = 0; done < REQUESTS;) {
        ssize_t got = MUST(recv(fd, batch, sizeof batch, 0));
        if (got == 0)
            give_up("early end");
        if (got % 4 != 0) {
            recv_all(fd, (char *)batch + got, (size_t)(4 - got % 4));
            got += 4 - got % 4;
        }
        for (ssize_t i = 0; i < got / 4; i++) {
            sum += batch[i];
            batch[i] = ~batch[i];
        }
        send_all(fd, batch, (size_t)got);
        done += (uint32_t)got / 4;
    }
    say("sum %llu", (unsigned long long)sum);
}

static void client(int fd)
{
    uint32_t out = 0, back = 0, value;
    int wrong = 0;
    while (back < REQUESTS) {
        uint32_t depth = 1 + out * 2654435761u % 50;
        for (uint32_t i = 0; i < depth && out < REQUESTS; i++, out++)
            MUST(write(fd, &out, 4));
        while (back < out) {
            recv_all(fd, &value, 4);
            wrong += value != ~back;
            back++;
        }
    }
    say("wrong %d", wrong);
}

int main(void)
{
    return run_pair(server, client);
}
