// about: bytes moved on an upgraded connection by the numbers of calls, and by the further names that libc has for them
// upgraded: yes
#include "trial.h"

extern ssize_t __read(int, void *, size_t);
extern ssize_t __write(int, const void *, size_t);
extern ssize_t __send(int, const void *, size_t, int);
#ifdef __aarch64__ /* glibc has the name there for programs that were linked long ago */
__asm__(".symver __send, __send@GLIBC_2.17");
#endif

#define WAYS 7
static int file;

static long receive(int fd, int way, char *text)
{
    struct iovec part = {text, 4};
    struct mmsghdr many = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
    int pipes[2], queued = 0;
    long got;
    switch (way) {
    case 0:
        return __read(fd, text, 4);
    case 1:
        return syscall(SYS_readv, fd, &part, 1);
    case 2:
        return syscall(SYS_preadv2, fd, &part, 1, -1L, -1L, 0);
    case 3:
        return 10 * syscall(SYS_recvmmsg, fd, &many, 1, MSG_WAITFORONE, NULL) + many.msg_len;
    case 4:
        MUST(pipe(pipes));
        got = syscall(SYS_splice, fd, NULL, pipes[1], NULL, 4, 0);
        MUST(read(pipes[0], text, 4));
        MUST(close(pipes[0]));
        MUST(close(pipes[1]));
        return got;
    case 5:
        MUST(syscall(SYS_ioctl, fd, FIONREAD, &queued));
        say("queued %d", queued);
        return syscall(SYS_preadv2, fd, &part, 1, -1L, -1L, RWF_NOWAIT);
    default:
        return syscall(SYS_recvmsg, fd, &many.msg_hdr, 0);
    }
}

static long transmit(int fd, int way)
{
    struct iovec part = {(char *)"back", 4};
    struct mmsghdr many = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
    int pipes[2];
    off_t at = 0;
    long sent;
    switch (way) {
    case 0:
        return __write(fd, "back", 4);
    case 1:
        return __send(fd, "back", 4, MSG_NOSIGNAL);
    case 2:
        return syscall(SYS_writev, fd, &part, 1);
    case 3:
        return 10 * syscall(SYS_sendmmsg, fd, &many, 1, 0) + many.msg_len;
    case 4:
        return syscall(SYS_pwritev2, fd, &part, 1, -1L, -1L, 0);
    case 5:
        return syscall(SYS_sendfile, fd, file, &at, 4);
    default:
        MUST(pipe(pipes));
        MUST(write(pipes[1], "back", 4));
        sent = syscall(SYS_splice, pipes[0], NULL, fd, NULL, 4, 0);
        MUST(close(pipes[0]));
        MUST(close(pipes[1]));
        return sent;
    }
}

static void server(int fd)
{
    for (int i = 0; i < WAYS; i++) {
        char text[8] = {0};
        send_all(fd, "abcd", 4);
        recv_all(fd, text, 4);
        say("%s", text);
        round_trips(fd, SERVER, 20, 64);
    }
}

static void client(int fd)
{
    file = (int)MUST(open("file", O_RDWR | O_CREAT | O_TRUNC, 0600));
    MUST(write(file, "back", 4));
    for (int way = 0; way < WAYS; way++) {
        char text[8] = {0};
        await_bytes(fd, 4);
        say("way %d: %ld %s", way, receive(fd, way, text), text);
        say("way %d: %ld", way, transmit(fd, way));
        round_trips(fd, CLIENT, 20, 64);
    }
}

int main(void)
{
    return run_pair(server, client);
}
