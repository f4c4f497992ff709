// about: select over more than a hundred descriptors, of which one is upgraded, takes no memory of the program's
// upgraded: yes
// variants: plain
#include "trial.h"

#define MANY 100

extern void *__libc_malloc(size_t);
static volatile bool counting;
static volatile int taken;

void *malloc(size_t bytes)
{
    taken += counting;
    return __libc_malloc(bytes);
}

static void server(int fd)
{
    send_all(fd, "data", 4);
    recv_all(fd, (char[1]){0}, 1);
}

static void client(int fd)
{
    int pipes[MANY][2], highest = fd;
    fd_set in;
    await_bytes(fd, 4);
    for (int i = 0; i < MANY; i++) {
        MUST(pipe(pipes[i]));
        highest = pipes[i][1] > highest ? pipes[i][1] : highest;
    }
    for (int round = 0; round < 3; round++) {
        FD_ZERO(&in);
        FD_SET(fd, &in);
        for (int i = 0; i < MANY; i++)
            FD_SET(pipes[i][0], &in);
        counting = true;
        int rc = select(highest + 1, &in, NULL, NULL, NULL);
        counting = false;
        say("%d %d, taken %d", rc, FD_ISSET(fd, &in), taken);
    }
    send_all(fd, "!", 1);
}

int main(void)
{
    return run_pair(server, client);
}
