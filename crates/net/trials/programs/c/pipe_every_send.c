// about: every send call after the own SHUT_WR: EPIPE from each, SIGPIPE from those that have no MSG_NOSIGNAL, and receiving goes on
// upgraded: yes
#include "trial.h"
#include <sys/sendfile.h>

static void tried(const char *what, ssize_t rc)
{
    say_rc(what, rc);
    say("  signals %d", (int)trial_signals);
    trial_signals = 0;
}
#define TRIED(call) tried(#call, (errno = 0, (ssize_t)(call)))

static void server(int fd)
{
    char byte;
    say("end %zd", recv(fd, &byte, 1, 0));
    send_all(fd, "still here", 10);
    meet();
}

static void client(int fd)
{
    char text[16] = "unsent";
    struct iovec parts[2] = {{text, 3}, {text + 3, 3}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    struct mmsghdr many[2] = {{.msg_hdr = message}, {.msg_hdr = message}};
    int tube[2], file = (int)MUST(open("file", O_RDWR | O_CREAT, 0600));
    MUST(write(file, "content", 7));
    MUST(pipe(tube));
    MUST(write(tube[1], "in the pipe", 11));
    count_signals(SIGPIPE, 0);
    MUST(shutdown(fd, SHUT_WR));
    TRIED(write(fd, text, 6));
    TRIED(writev(fd, parts, 2));
    TRIED(send(fd, text, 6, 0));
    TRIED(send(fd, text, 6, MSG_NOSIGNAL));
    TRIED(send(fd, text, 6, MSG_DONTWAIT));
    TRIED(send(fd, text, 6, MSG_MORE | MSG_NOSIGNAL));
    TRIED(sendto(fd, text, 6, 0, NULL, 0));
    TRIED(sendmsg(fd, &message, 0));
    TRIED(sendmsg(fd, &message, MSG_NOSIGNAL));
    TRIED(sendmmsg(fd, many, 2, 0));
    TRIED(sendmmsg(fd, many, 2, MSG_NOSIGNAL));
    TRIED(pwritev2(fd, parts, 2, -1, 0));
    TRIED(sendfile(fd, file, &(off_t){0}, 7));
    TRIED(splice(tube[0], NULL, fd, NULL, 11, 0));
    int left = -1;
    MUST(ioctl(tube[0], FIONREAD, &left));
    say("left in the pipe %d", left);
    recv_all(fd, text, 10);
    say("%.10s", text);
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
