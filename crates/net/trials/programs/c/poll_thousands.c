// about: poll of three thousand entries with one upgraded connection among them, the same number many times, and negative ones
// upgraded: yes
#include "trial.h"

#define COUNT 3000

static void server(int fd)
{
    for (int i = 0; i < 5; i++) {
        meet();
        send_all(fd, "data", 4);
        meet();
    }
}

static void client(int fd)
{
    static struct pollfd entries[COUNT];
    int tube[2], half = COUNT / 2;
    MUST(pipe(tube));
    for (int i = 0; i < COUNT; i++) {
        entries[i].fd = i % 3 == 0 ? -1 - i : tube[0];
        entries[i].events = POLLIN;
    }
    for (int i = 0; i < 5; i++) {
        entries[half].fd = entries[half + 7].fd = entries[COUNT - 1].fd = fd;
        entries[half + 7].events = POLLOUT;
        entries[COUNT - 1].events = POLLIN | POLLOUT;
        say("quiet %d", poll(entries, COUNT, 0));
        meet();
        await_bytes(fd, 4);
        int rc = poll(entries, COUNT, LONG_MS), sum = 0;
        for (int j = 0; j < COUNT; j++)
            sum += entries[j].revents;
        say("poll %d, %#x %#x %#x, sum %#x", rc, (unsigned)entries[half].revents, (unsigned)entries[half + 7].revents,
            (unsigned)entries[COUNT - 1].revents, (unsigned)sum);
        char text[8];
        recv_all(fd, text, 4);
        meet();
    }
}

int main(void)
{
    return run_pair(server, client);
}
