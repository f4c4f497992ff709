// about: SO_RCVTIMEO in every receive call and in accept, SO_SNDTIMEO in every send call: EAGAIN, nothing sent, nothing taken
// upgraded: yes
#include "trial.h"
#include <sys/sendfile.h>

static void set_timeout(int fd, int option, int ms)
{
    struct timeval wait = {.tv_usec = ms * 1000};
    MUST(setsockopt(fd, SOL_SOCKET, option, &wait, sizeof wait));
}

/* Until nothing more fits. */
#define FULL(call)        \
    do {                  \
        long rc_;         \
        while ((rc_ = (call)) > 0) \
            ;             \
        say_rc(#call, rc_); \
    } while (0)

static void server(int fd)
{
    static char block[1 << 20];
    struct iovec part = {block, sizeof block};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    struct mmsghdr many = {.msg_hdr = message};
    int listener = listen_at("127.0.0.1"), file = (int)MUST(open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    MUST(ftruncate(file, sizeof block));
    set_timeout(listener, SO_RCVTIMEO, SHORT_MS);
    SAY(accept(listener, NULL, NULL));
    SAY(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
    set_timeout(fd, SO_SNDTIMEO, SHORT_MS);
    FULL(write(fd, block, sizeof block));
    FULL(writev(fd, &part, 1));
    FULL(sendto(fd, block, sizeof block, 0, NULL, 0));
    FULL(sendmsg(fd, &message, 0));
    FULL(sendmmsg(fd, &many, 1, 0));
    FULL(pwritev2(fd, &part, 1, -1, 0));
    FULL(sendfile(fd, file, &(off_t){0}, sizeof block));
    meet();
    meet();
}

static void client(int fd)
{
    char text[8];
    int tube[2];
    struct iovec part = {text, 8};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    struct mmsghdr many = {.msg_hdr = message};
    MUST(pipe(tube));
    meet();
    int drained = fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK);
    static char block[1 << 20];
    while (drained == 0 || errno == EINTR)
        if (poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, SHORT_MS) == 0 || read(fd, block, sizeof block) < 0)
            break;
    MUST(fcntl(fd, F_SETFL, O_RDWR));
    set_timeout(fd, SO_RCVTIMEO, SHORT_MS);
    SAY(read(fd, text, 8));
    SAY(readv(fd, &part, 1));
    SAY(recvfrom(fd, text, 8, 0, NULL, NULL));
    SAY(recvmsg(fd, &message, 0));
    SAY(recvmsg(fd, &message, MSG_WAITALL));
    SAY(recvmmsg(fd, &many, 1, 0, NULL));
    SAY(preadv2(fd, &part, 1, -1, 0));
    SAY(splice(fd, NULL, tube[1], NULL, 8, 0));
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
