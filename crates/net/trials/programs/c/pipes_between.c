// about: splice of a connection that does not block, tee, vmsplice and a pump of sockets through pipes; what sockets refuse
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    static unsigned char block[100000];
    char text[16] = {0};
    meet();
    send_all(fd, "to the pipe", 11);
    recv_all(fd, text, 11);
    say("%s", text);
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = pattern(8, i);
    send_all(fd, block, sizeof block);
    memset(block, 0, sizeof block);
    recv_all(fd, block, sizeof block);
    int wrong = 0;
    for (size_t i = 0; i < sizeof block; i++)
        wrong += block[i] != pattern(8, i);
    say("wrong %d", wrong);
    MUST(shutdown(fd, SHUT_WR));
    meet();
}

static void client(int fd)
{
    char text[16] = {0};
    int tube[2], copy[2];
    off_t at = 0;
    MUST(pipe(tube));
    MUST(pipe(copy));
    MUST(fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK));
    SAY(splice(fd, NULL, tube[1], NULL, 100, 0));
    MUST(fcntl(fd, F_SETFL, O_RDWR));
    SAY(splice(fd, &at, tube[1], NULL, 100, 0));
    SAY(splice(tube[0], NULL, tube[1], NULL, 100, SPLICE_F_NONBLOCK));
    SAY(tee(fd, tube[1], 10, 0));
    SAY(copy_file_range(fd, NULL, tube[1], NULL, 10, 0));
    meet();
    await_bytes(fd, 11);
    SAY(splice(fd, NULL, tube[1], NULL, 100, SPLICE_F_MOVE));
    SAY(tee(tube[0], copy[1], 100, 0));
    SAY(splice(tube[0], NULL, fd, NULL, 100, SPLICE_F_MORE));
    SAY(read(copy[0], text, 16));
    say("%s", text);
    for (size_t left = 100000; left > 0;) {
        ssize_t in = MUST(splice(fd, NULL, tube[1], NULL, left < 30000 ? left : 30000, 0));
        left -= (size_t)in;
        while (in > 0)
            in -= MUST(splice(tube[0], NULL, fd, NULL, (size_t)in, 0));
    }
    await_event(fd, POLLRDHUP);
    SAY(splice(fd, NULL, tube[1], NULL, 100, 0));
    SAY(vmsplice(copy[1], &(struct iovec){"mapped", 6}, 1, 0));
    SAY(splice(copy[0], NULL, fd, NULL, 6, 0));
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
