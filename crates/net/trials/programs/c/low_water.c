// about: SO_RCVLOWAT above one: what recv waits for, and from how many bytes poll, select and epoll report
// upgraded: yes
#include "trial.h"

static int set;

static void asked(int fd, const char *when)
{
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    struct epoll_event event = {0};
    struct timeval now = {0};
    fd_set readable;
    FD_ZERO(&readable);
    FD_SET(fd, &readable);
    int polled = (int)MUST(poll(&entry, 1, 0));
    int selected = (int)MUST(select(fd + 1, &readable, NULL, NULL, &now));
    int waited = (int)MUST(epoll_wait(set, &event, 1, 0));
    say("%s: poll %d %#x, select %d, epoll %d %#x", when, polled, (unsigned)entry.revents, selected, waited,
        (unsigned)event.events);
}

static void low_water(int fd, int bytes)
{
    int now = 0;
    socklen_t length = sizeof now;
    MUST(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes));
    MUST(getsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &now, &length));
    say("low water %d", now);
}

static void server(int fd)
{
    char text[128] = {0};
    meet(); /* one: harmless */
    round_trips(fd, SERVER, 50, 64);
    send_all(fd, text, 30);
    meet(); /* the option is set beside these */
    meet();
    round_trips(fd, SERVER, 1, 64);
    send_all(fd, text, 49);
    meet();
    meet();
    send_all(fd, text, 1);
    meet();
    send_all(fd, text, 20); /* recv waits for more */
    meet();
    send_all(fd, text, 60);
    meet();
    send_all(fd, text, 7);
    MUST(shutdown(fd, SHUT_WR));
    say("end %zd", recv(fd, text, 1, 0));
}

static void client(int fd)
{
    char text[128];
    struct epoll_event want = {.events = EPOLLIN};
    set = (int)MUST(epoll_create1(EPOLL_CLOEXEC));
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
    low_water(fd, 1);
    meet();
    round_trips(fd, CLIENT, 50, 64);
    meet();
    await_bytes(fd, 30);
    low_water(fd, 50);
    meet();
    /* Whatever was in flight is here after a round trip. */
    char out[64], in[94];
    memset(out, 'C', sizeof out);
    send_all(fd, out, sizeof out);
    recv_all(fd, in, sizeof in);
    meet();
    await_bytes(fd, 49);
    asked(fd, "49 bytes");
    meet();
    await_bytes(fd, 50);
    asked(fd, "50 bytes");
    say("recv %zd", recv(fd, text, 10, MSG_DONTWAIT));
    asked(fd, "40 left");
    recv_all(fd, text, 40);
    meet();
    await_bytes(fd, 20);
    say("recv %zd of fewer", recv(fd, text, 20, 0));
    meet();
    say("recv %zd of enough", recv(fd, text, 100, 0));
    meet();
    await_event(fd, POLLRDHUP);
    asked(fd, "7 bytes and the end");
    say("recv %zd", recv(fd, text, 100, 0));
    say("recv %zd", recv(fd, text, 100, 0));
    MUST(close(fd));
}

int main(void)
{
    return run_pair(server, client);
}
