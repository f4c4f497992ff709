// about: sendfile from a file, splice both ways through a pipe, copy into an upgraded socket at an offset
// upgraded: yes
#include "trial.h"
#include <sys/sendfile.h>

#define SIZE 300000

static void server(int fd)
{
    static unsigned char block[SIZE];
    int file = (int)MUST(memfd_create("data", 0));
    for (size_t i = 0; i < SIZE; i++)
        block[i] = pattern(3, i);
    MUST(write(file, block, SIZE));
    off_t at = 100;
    say("sendfile %zd", sendfile(fd, file, &at, 50));
    say("offset %lld, file position %lld", (long long)at, (long long)lseek(file, 0, SEEK_CUR));
    MUST(lseek(file, 150, SEEK_SET));
    for (size_t left = SIZE - 150; left > 0;) {
        ssize_t sent = MUST(sendfile(fd, file, NULL, left));
        if (sent == 0)
            break;
        left -= (size_t)sent;
    }
    say("file position %lld", (long long)lseek(file, 0, SEEK_CUR));
    SAY(sendfile(fd, file, NULL, 10));
    meet();
    int tube[2];
    MUST(pipe(tube));
    MUST(write(tube[1], "through a pipe", 14));
    say("splice out %zd", splice(tube[0], NULL, fd, NULL, 14, SPLICE_F_MOVE));
    loff_t where = 0;
    SAY(splice(tube[0], NULL, fd, &where, 14, 0));
    SAY(splice(fd, NULL, fd, NULL, 14, 0));
    meet();
    meet();
}

static void client(int fd)
{
    static unsigned char block[SIZE];
    recv_all(fd, block, SIZE - 100);
    int wrong = 0;
    for (size_t i = 0; i < SIZE - 100; i++)
        wrong += block[i] != pattern(3, i + 100);
    say("wrong bytes %d", wrong);
    meet();
    meet();
    await_bytes(fd, 14);
    int tube[2];
    char text[32] = {0};
    MUST(pipe(tube));
    say("splice in %zd", splice(fd, NULL, tube[1], NULL, 7, 0));
    say("splice in %zd", splice(fd, NULL, tube[1], NULL, 100, SPLICE_F_NONBLOCK));
    MUST(fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK)); /* SPLICE_F_NONBLOCK is about the pipe only */
    SAY(splice(fd, NULL, tube[1], NULL, 100, 0));
    MUST(read(tube[0], text, 14));
    say("%s", text);
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
