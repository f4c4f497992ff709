// about: sendfile of six megabytes to a connection that does not block: counts, offsets, EAGAIN, the file's own position
// upgraded: yes
#include "trial.h"
#include <sys/sendfile.h>

enum { TOTAL = 6 << 20 };
static unsigned char block[TOTAL];

static void server(int fd)
{
    size_t wrong = 0;
    meet();
    recv_all(fd, block, TOTAL);
    for (size_t i = 0; i < TOTAL; i++)
        wrong += block[i] != pattern(2, i);
    recv_all(fd, block, 1000);
    for (size_t i = 0; i < 1000; i++)
        wrong += block[i] != pattern(2, i);
    char byte;
    say("wrong %zu, end %zd", wrong, recv(fd, &byte, 1, 0));
}

static void client(int fd)
{
    int file = (int)MUST(open("big", O_RDWR | O_CREAT | O_TRUNC, 0600)), full = 0, odd = 0;
    for (size_t i = 0; i < TOTAL; i++)
        block[i] = pattern(2, i);
    if (MUST(write(file, block, TOTAL)) != TOTAL)
        give_up("a short file");
    MUST(fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK));
    off_t at = 0;
    while (at < TOTAL) {
        off_t before = at;
        ssize_t sent = sendfile(fd, file, &at, (size_t)(TOTAL - at));
        odd += sent > 0 ? at != before + sent : at != before || errno != EAGAIN;
        if (sent < 0 && full++ == 0)
            meet(); /* from here on the peer reads */
        if (sent < 0)
            await_event(fd, POLLOUT);
    }
    say("was full %d, odd %d, own position %lld", full > 0, odd, (long long)lseek(file, 0, SEEK_CUR));
    MUST(fcntl(fd, F_SETFL, O_RDWR));
    MUST(lseek(file, 0, SEEK_SET));
    SAY(sendfile(fd, file, NULL, 1000));
    say("position %lld", (long long)lseek(file, 0, SEEK_CUR));
    MUST(lseek(file, 0, SEEK_END));
    SAY(sendfile(fd, file, NULL, 1000));
    SAY(sendfile(fd, fd, NULL, 10));
    SAY(sendfile(fd, -1, NULL, 10));
    MUST(close(fd));
}

int main(void)
{
    return run_pair(server, client);
}
