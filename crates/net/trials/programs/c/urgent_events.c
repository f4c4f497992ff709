// about: urgent data in POLLPRI, EPOLLPRI and the third set of select, before and after the byte is read
// upgraded: any
#include "trial.h"

static void show(const char *when, int fd, int set)
{
    struct pollfd entry = {.fd = fd, .events = POLLPRI | POLLIN};
    struct epoll_event got = {0};
    struct timeval now = {0};
    fd_set odd;
    FD_ZERO(&odd);
    FD_SET(fd, &odd);
    MUST(poll(&entry, 1, 0));
    int waited = (int)MUST(epoll_wait(set, &got, 1, 0));
    int rc = (int)MUST(select(fd + 1, NULL, NULL, &odd, &now));
    say("%s: poll %#x, epoll %#x, select %d", when, (unsigned)entry.revents, waited > 0 ? got.events : 0, rc);
}

static void server(int fd)
{
    meet();
    send_all(fd, "before", 6);
    SAY(send(fd, "!", 1, MSG_OOB));
    meet();
    meet();
    send_all(fd, "after", 5);
    round_trips(fd, SERVER, 50, 64);
}

static void client(int fd)
{
    char text[16] = {0};
    int set = (int)MUST(epoll_create1(0));
    struct epoll_event want = {.events = EPOLLPRI};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
    show("quiet", fd, set);
    SAY(recv(fd, text, 1, MSG_OOB));
    meet();
    await_event(fd, POLLPRI);
    show("urgent", fd, set);
    meet();
    SAY(recv(fd, text, 1, MSG_OOB | MSG_PEEK));
    SAY(recv(fd, text, 1, MSG_OOB));
    say("%c", text[0]);
    SAY(recv(fd, text, 1, MSG_OOB));
    show("byte taken", fd, set);
    SAY(recv(fd, text, 16, 0)); /* stops at the mark */
    say("%.6s", text);
    show("at the mark", fd, set);
    meet();
    recv_all(fd, text, 5);
    say("%.5s", text);
    show("behind it", fd, set);
    round_trips(fd, CLIENT, 50, 64);
}

int main(void)
{
    return run_pair(server, client);
}
