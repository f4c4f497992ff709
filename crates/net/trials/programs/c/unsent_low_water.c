// about: TCP_NOTSENT_LOWAT: when poll, epoll and send stop for a reader that lags, and go on
// upgraded: yes
#include "trial.h"

enum { PART = 4096, MARK = 16 * 1024, MUCH = 1 << 20, MORE = 3 << 20 };

static char data[MORE];
static int line, held[2];

/* A thread that found room at once sleeps here, and not before its end. */
static void hold(void)
{
    char byte;
    MUST(read(held[0], &byte, 1));
}

static void finish(struct sleeper *sleeper)
{
    MUST(write(held[1], "x", 1));
    join_sleeper(sleeper);
}

static void low_water(int fd, int bytes)
{
    int now = 0;
    socklen_t length = sizeof now;
    MUST(setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes));
    MUST(getsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &now, &length));
    if (now != bytes)
        give_up("low water reads back %d", now);
}

/* Sends small parts as long as poll says so; the bytes sent. */
static long fill(int fd)
{
    struct pollfd entry = {.fd = fd, .events = POLLOUT};
    long sent = 0, part;
    while (poll(&entry, 1, SHORT_MS) == 1 && (part = send(fd, data, PART, MSG_DONTWAIT)) > 0)
        sent += part;
    return sent;
}

static void send_much(void)
{
    send_all(line, data, MORE);
    hold();
}

static void wait_for_room(void)
{
    struct epoll_event event = {.events = EPOLLOUT};
    int set = (int)MUST(epoll_create1(EPOLL_CLOEXEC));
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, line, &event));
    SAY(epoll_wait(set, &event, 1, LONG_MS));
    say("events %#x", (unsigned)event.events);
    MUST(close(set));
    hold();
}

static void server(int fd)
{
    struct sleeper sleeper;
    line = fd;
    MUST(pipe(held));
    low_water(fd, MARK);
    long sent = fill(fd);
    say("stopped early: %d", sent < MUCH);
    start_sleeper(&sleeper, wait_for_room);
    meet();
    finish(&sleeper);
    meet();
    sent += fill(fd);
    start_sleeper(&sleeper, wait_for_room);
    low_water(fd, 0); /* as the system has it, which is without a mark */
    finish(&sleeper);
    sent += fill(fd);
    say("without a mark it takes more: %d", sent > 2 * MARK);
    low_water(fd, MARK);
    start_sleeper(&sleeper, send_much);
    meet();
    finish(&sleeper);
    MUST(shutdown(fd, SHUT_WR));
    MUST(write(trial_meet[1], &sent, sizeof sent));
}

static void client(int fd)
{
    long sent = 0, got = 0;
    meet();
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    while (poll(&entry, 1, SHORT_MS) == 1)
        got += MUST(recv(fd, data, PART, 0));
    meet();
    meet();
    got += recv_to_end(fd);
    MUST(read(trial_meet[0], &sent, sizeof sent));
    say("everything came: %d", got == sent + MORE);
}

int main(void)
{
    return run_pair(server, client);
}
