// about: readv and writev of IOV_MAX parts, empty ones among them, of odd sizes; one more part is EINVAL
// upgraded: yes
#include "trial.h"
#include <limits.h>

enum { PARTS = 1024, MOST = 97 };
static unsigned char bytes[PARTS * MOST];
static struct iovec parts[PARTS + 1];

static size_t cut(int step)
{
    size_t at = 0;
    for (int i = 0; i <= PARTS; i++) {
        size_t length = i % 5 == 0 ? 0 : (size_t)(i * step % MOST);
        parts[i] = (struct iovec){bytes + at, length};
        at += i < PARTS ? length : 0;
    }
    return at;
}

static void server(int fd)
{
    size_t total = cut(7), done = 0, wrong = 0;
    meet();
    SAY(readv(fd, parts, PARTS + 1));
    while (done < total) {
        static unsigned char block[PARTS * MOST];
        struct iovec two[3] = {{block, 0}, {block, 1000}, {block + 1000, sizeof block - 1000}};
        ssize_t got = MUST(readv(fd, two, 3));
        for (ssize_t i = 0; i < got; i++)
            wrong += block[i] != pattern(4, done + (size_t)i);
        done += (size_t)got;
    }
    say("in few parts: %zu, wrong %zu", done, wrong);
    meet();
    total = cut(13);
    await_bytes(fd, (int)total);
    say("in many parts: %d", readv(fd, parts, PARTS) == (ssize_t)total);
    for (size_t i = wrong = 0; i < total; i++)
        wrong += bytes[i] != pattern(5, i);
    say("wrong %zu", wrong);
}

static void send_parts(int fd, size_t total, uint64_t stream)
{
    for (size_t i = 0; i < total; i++)
        bytes[i] = pattern(stream, i);
    say("whole %d", writev(fd, parts, PARTS) == (ssize_t)total);
}

static void client(int fd)
{
    meet();
    SAY(writev(fd, parts, PARTS + 1));
    send_parts(fd, cut(7), 4);
    meet();
    send_parts(fd, cut(13), 5);
    struct iovec nothing[4] = {{0}};
    SAY(writev(fd, nothing, 4));
    char byte;
    say("end %zd", recv(fd, &byte, 1, 0));
}

int main(void)
{
    return run_pair(server, client);
}
