// about: threads with the smallest stacks that pthread_attr_setstacksize takes make every call
// upgraded: yes
#include "trial.h"
#include <limits.h>
#include <sys/sendfile.h>

static int line;

static void *make_calls(void *unused)
{
    char text[64];
    struct iovec parts[2] = {{text, 32}, {text + 32, 32}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    int set = (int)MUST(epoll_create1(0)), tube[2];
    struct epoll_event want = {.events = EPOLLIN}, got;
    MUST(pipe(tube));
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, line, &want));
    for (int i = 0; i < 7; i++) {
        struct pollfd entry = {.fd = line, .events = POLLIN};
        fd_set readable;
        FD_ZERO(&readable);
        FD_SET(line, &readable);
        memset(text, 'a' + i, sizeof text);
        send_all(line, text, sizeof text);
        if (i == 0)
            MUST(recv(line, text, 64, MSG_WAITALL));
        else if (i == 1)
            MUST(poll(&entry, 1, LONG_MS));
        else if (i == 2)
            MUST(select(line + 1, &readable, NULL, NULL, NULL));
        else if (i == 3)
            MUST(epoll_wait(set, &got, 1, LONG_MS));
        else if (i == 4)
            MUST(recvmsg(line, &message, MSG_WAITALL));
        else if (i == 5)
            MUST(splice(line, NULL, tube[1], NULL, 64, 0));
        if (i == 5) {
            MUST(read(tube[0], text, 64));
        } else if (i != 0 && i != 4) {
            recv_all(line, text, 64);
        }
        say("%d: %c%c", i, text[0], text[63]);
    }
    int file = (int)MUST(open("small", O_RDWR | O_CREAT | O_TRUNC, 0600));
    MUST(write(file, "from a file", 11));
    off_t at = 0;
    MUST(sendfile(line, file, &at, 11));
    recv_all(line, text, 11);
    say("%.11s", text);
    MUST(close(file));
    MUST(close(set));
    MUST(close(tube[0]));
    MUST(close(tube[1]));
    return unused;
}

static void server(int fd)
{
    char text[64];
    ssize_t got;
    while ((got = MUST(recv(fd, text, sizeof text, 0))) > 0)
        send_all(fd, text, (size_t)got);
    say("end");
}

static void client(int fd)
{
    pthread_attr_t attr;
    pthread_t thread;
    line = fd;
    MUST(pthread_attr_init(&attr));
    say("stack %d", pthread_attr_setstacksize(&attr, (size_t)sysconf(_SC_THREAD_STACK_MIN)));
    for (int i = 0; i < 3; i++) {
        MUST(pthread_create(&thread, &attr, make_calls, NULL));
        MUST(pthread_join(thread, NULL));
    }
    MUST(close(fd));
}

int main(void)
{
    return run_pair(server, client);
}
