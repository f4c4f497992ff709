// about: sends and receives of nothing: with data there, without, at the end and after a reset; the peer is not woken
// upgraded: yes
// flags: -Wno-nonnull
#include "trial.h"

static void all_of_nothing(const char *when, int fd)
{
    char text[4];
    struct iovec empty[2] = {{text, 0}, {NULL, 0}};
    struct msghdr message = {.msg_iov = empty, .msg_iovlen = 2}, bare = {0};
    say("[%s]", when);
    SAY(read(fd, text, 0));
    SAY(recv(fd, text, 0, MSG_DONTWAIT));
    SAY(recv(fd, text, 0, MSG_DONTWAIT | MSG_PEEK));
    SAY(readv(fd, empty, 2));
    SAY(recvmsg(fd, &message, MSG_DONTWAIT));
    SAY(recvmsg(fd, &bare, MSG_DONTWAIT));
    SAY(write(fd, text, 0));
    SAY(send(fd, text, 0, MSG_NOSIGNAL));
    SAY(sendto(fd, NULL, 0, MSG_NOSIGNAL, NULL, 0));
    SAY(writev(fd, empty, 2));
    SAY(sendmsg(fd, &message, MSG_NOSIGNAL));
    SAY(sendmsg(fd, &bare, MSG_NOSIGNAL | MSG_DONTWAIT));
}

static void server(int fd)
{
    meet();
    send_all(fd, "data", 4);
    meet();
    meet();
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    say("peer woken by nothing: %d", poll(&entry, 1, SHORT_MS));
    MUST(shutdown(fd, SHUT_WR));
    meet();
    meet();
    close_hard(fd);
}

static void client(int fd)
{
    char text[8] = {0};
    signal(SIGPIPE, SIG_IGN);
    MUST(fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK));
    all_of_nothing("open", fd);
    meet();
    await_bytes(fd, 4);
    all_of_nothing("data there", fd);
    recv_all(fd, text, 4);
    say("%s", text);
    meet();
    meet();
    await_event(fd, POLLRDHUP);
    all_of_nothing("the end", fd);
    meet();
    meet();
    await_event(fd, POLLERR);
    all_of_nothing("reset", fd);
}

int main(void)
{
    return run_pair(server, client);
}
