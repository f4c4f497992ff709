// about: every call on a number that was an upgraded connection and is closed: EBADF, and the peer's other connection is untouched
// upgraded: yes
// flags: -Wno-nonnull
#include "trial.h"
#include <sys/sendfile.h>

static void server(int fd)
{
    int listener = open_door();
    int other = warm_server(listener);
    char byte;
    say("end %zd", recv(other, &byte, 1, 0));
    meet();
    round_trips(fd, SERVER, 20, 64);
}

static void client(int fd)
{
    char text[8];
    struct iovec part = {text, 8};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    struct mmsghdr many = {.msg_hdr = message};
    struct place place = {.length = sizeof place.addr};
    struct epoll_event want = {.events = EPOLLIN};
    struct stat status;
    socklen_t length = 4;
    int tube[2], set = (int)MUST(epoll_create1(0));
    MUST(pipe(tube));
    int gone = warm_client(find_door());
    MUST(close(gone));
    SAY(close(gone));
    SAY(read(gone, text, 8));
    SAY(readv(gone, &part, 1));
    SAY(recv(gone, text, 8, 0));
    SAY(recvfrom(gone, text, 8, MSG_DONTWAIT, NULL, NULL));
    SAY(recvmsg(gone, &message, MSG_PEEK));
    SAY(recvmmsg(gone, &many, 1, 0, NULL));
    SAY(preadv2(gone, &part, 1, -1, 0));
    SAY(write(gone, text, 8));
    SAY(writev(gone, &part, 1));
    SAY(send(gone, text, 8, MSG_NOSIGNAL));
    SAY(sendto(gone, text, 8, 0, NULL, 0));
    SAY(sendmsg(gone, &message, 0));
    SAY(sendmmsg(gone, &many, 1, 0));
    SAY(pwritev2(gone, &part, 1, -1, 0));
    SAY(splice(gone, NULL, tube[1], NULL, 8, 0));
    SAY(splice(tube[0], NULL, gone, NULL, 8, SPLICE_F_NONBLOCK));
    SAY(sendfile(gone, fd, NULL, 8));
    SAY(shutdown(gone, SHUT_RDWR));
    SAY(getsockname(gone, (struct sockaddr *)&place.addr, &place.length));
    SAY(getpeername(gone, (struct sockaddr *)&place.addr, &place.length));
    SAY(getsockopt(gone, SOL_SOCKET, SO_ERROR, text, &length));
    SAY(setsockopt(gone, SOL_SOCKET, SO_KEEPALIVE, text, 4));
    SAY(fcntl(gone, F_GETFL));
    SAY(fcntl(gone, F_DUPFD, 0));
    SAY(ioctl(gone, FIONREAD, &length));
    SAY(dup(gone));
    SAY(dup3(gone, fd, 0));
    SAY(fstat(gone, &status));
    SAY(epoll_ctl(set, EPOLL_CTL_ADD, gone, &want));
    SAY(epoll_ctl(set, EPOLL_CTL_DEL, gone, NULL));
    SAY(listen(gone, 1));
    SAY(accept(gone, NULL, NULL));
    meet();
    round_trips(fd, CLIENT, 20, 64);
}

int main(void)
{
    return run_pair(server, client);
}
