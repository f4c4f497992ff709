// about: buffers that end where a forbidden page begins, fresh pages, a read-only mapped file and memory shared with a child, in sends and receives
// upgraded: yes
#include "trial.h"

enum { PAGE = 65536, ROOM = PAGE }; /* a multiple of every size of a page */

/* The end of memory behind which any access is a fault. */
static char *guarded_end(void)
{
    char *at = mmap(NULL, ROOM + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || mprotect(at + ROOM, PAGE, PROT_NONE) != 0)
        give_up("no guarded memory");
    return at + ROOM;
}

static void fill(char *at, size_t size, uint64_t stream)
{
    for (size_t i = 0; i < size; i++)
        at[i] = (char)pattern(stream, i);
}

static void check(const char *what, const char *at, size_t size, uint64_t stream)
{
    int wrong = 0;
    for (size_t i = 0; i < size; i++)
        wrong += (unsigned char)at[i] != pattern(stream, i);
    say("%s: wrong %d", what, wrong);
}

static const size_t sizes[] = {1, 7, 8, 9, 63, 64, 65, 4095, 4096, 4097, ROOM};

static void server(int fd)
{
    char *end = guarded_end();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        fill(end - sizes[i], sizes[i], i);
        send_all(fd, end - sizes[i], sizes[i]);
        struct iovec parts[2] = {{end - sizes[i], sizes[i] / 2}, {end - (sizes[i] - sizes[i] / 2), sizes[i] - sizes[i] / 2}};
        MUST(writev(fd, parts, 2));
    }
    int file = (int)MUST(open("file", O_RDWR | O_CREAT, 0600));
    fill(end - ROOM, ROOM, 77);
    MUST(write(file, end - ROOM, ROOM));
    char *mapped = mmap(NULL, ROOM, PROT_READ, MAP_SHARED, file, 0);
    send_all(fd, mapped, ROOM);
    char *shared = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        fill(shared, ROOM, 78);
        _exit(0);
    }
    MUST(waitpid(child, NULL, 0));
    send_all(fd, shared, ROOM);
    say("end %zd", recv(fd, end - 1, 1, 0));
}

static void client(int fd)
{
    char *end = guarded_end();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        MUST(madvise(end - ROOM, ROOM, MADV_DONTNEED)); /* fresh pages */
        recv_all(fd, end - sizes[i], sizes[i]);
        check("at the end", end - sizes[i], sizes[i], i);
        struct iovec parts[2] = {{end - sizes[i], sizes[i] / 2}, {end - (sizes[i] - sizes[i] / 2), sizes[i] - sizes[i] / 2}};
        memset(end - sizes[i], 0, sizes[i]);
        size_t got = 0;
        while (got == 0)
            got = (size_t)MUST(readv(fd, parts, 2));
        recv_all(fd, end - sizes[i] + got, sizes[i] - got);
        check("in parts", end - sizes[i], sizes[i], i);
    }
    recv_all(fd, end - ROOM, ROOM);
    check("a mapped file", end - ROOM, ROOM, 77);
    recv_all(fd, end - ROOM, ROOM);
    check("shared memory", end - ROOM, ROOM, 78);
    MUST(close(fd));
}

int main(void)
{
    return run_pair(server, client);
}
