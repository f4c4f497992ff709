// about: writing to a peer that has gone: the reset, EPIPE, SIGPIPE, MSG_NOSIGNAL, and SIGPIPE ignored
// upgraded: yes
#include "trial.h"

static volatile sig_atomic_t pipes;
static void on_pipe(int number)
{
    (void)number;
    pipes++;
}

static void server(int fd)
{
    MUST(close(fd));
    meet();
    meet();
}

static void client(int fd)
{
    struct sigaction action = {.sa_handler = on_pipe};
    MUST(sigaction(SIGPIPE, &action, NULL));
    meet();
    await_event(fd, POLLRDHUP);
    say("first send %zd", send(fd, "x", 1, 0)); /* TCP takes it; the answer is a reset */
    await_event(fd, POLLERR | POLLHUP);
    SAY(send(fd, "x", 1, MSG_NOSIGNAL));
    say("signals %d", (int)pipes);
    SAY(send(fd, "x", 1, 0));
    say("signals %d", (int)pipes);
    SAY(write(fd, "x", 1));
    struct iovec part = {"x", 1};
    SAY(writev(fd, &part, 1));
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    SAY(sendmsg(fd, &message, 0));
    SAY(sendmsg(fd, &message, MSG_NOSIGNAL));
    SAY(sendto(fd, "x", 1, 0, NULL, 0));
    say("signals %d", (int)pipes);
    MUST(shutdown(fd, SHUT_RD) < 0 ? 0 : 0);
    signal(SIGPIPE, SIG_IGN);
    SAY(write(fd, "x", 1));
    struct sigaction now;
    MUST(sigaction(SIGPIPE, NULL, &now));
    say("SIGPIPE is %s", now.sa_handler == SIG_IGN ? "ignored" : "not ignored");
    signal(SIGPIPE, SIG_DFL);
    meet();
    write(fd, "x", 1);
    say("not reached");
}

int main(void)
{
    return run_pair(server, client);
}
