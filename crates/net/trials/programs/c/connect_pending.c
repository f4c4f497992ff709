// about: every call on a connection that is still being made, because the listener's queue is full: EALREADY, EAGAIN, ENOTCONN, and then it is made
// upgraded: any
#include "trial.h"

static void server(int fd)
{
    int listener = open_door();
    MUST(listen(listener, 0)); /* one fits */
    meet();
    meet();
    int first = accept_at(listener);
    int second = accept_at(listener); /* its SYN comes again within a second or so */
    warm_up(first, SERVER);
    warm_up(second, SERVER);
    round_trips(fd, SERVER, 10, 64);
}

static void client(int fd)
{
    char text[8];
    int port = find_door(), error = -1, set = (int)MUST(epoll_create1(0));
    struct place place = place_of("127.0.0.1", port), name = {.length = sizeof name.addr};
    struct epoll_event want = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP}, got = {0};
    socklen_t length = sizeof error;
    meet();
    int first = connect_at("127.0.0.1", port);
    int second = (int)MUST(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    SAY(connect(second, (struct sockaddr *)&place.addr, place.length));
    SAY(connect(second, (struct sockaddr *)&place.addr, place.length));
    struct pollfd entry = {.fd = second, .events = POLLIN | POLLOUT | POLLRDHUP};
    SAY(poll(&entry, 1, 0));
    say("events %#x", (unsigned)entry.revents);
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, second, &want));
    SAY(epoll_wait(set, &got, 1, 0));
    SAY(recv(second, text, 8, 0));
    SAY(read(second, text, 8));
    SAY(send(second, text, 8, MSG_NOSIGNAL));
    SAY(write(second, text, 8));
    SAY(getpeername(second, (struct sockaddr *)&name.addr, &name.length));
    SAY(getsockname(second, (struct sockaddr *)&name.addr, &name.length));
    SAY(getsockopt(second, SOL_SOCKET, SO_ERROR, &error, &length));
    say("error %d", error);
    SAY(ioctl(second, FIONREAD, &error));
    SAY(listen(second, 1));
    SAY(accept(second, NULL, NULL));
    SAY(bind(second, (struct sockaddr *)&place.addr, place.length));
    meet();
    SAY(epoll_wait(set, &got, 1, LONG_MS));
    say("%#x", got.events);
    (void)!connect(second, (struct sockaddr *)&place.addr, place.length);
    SAY(connect(second, (struct sockaddr *)&place.addr, place.length));
    MUST(setsockopt(second, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)));
    warm_up(first, CLIENT);
    warm_up(second, CLIENT);
    round_trips(fd, CLIENT, 10, 64);
}

int main(void)
{
    return run_pair(server, client);
}
