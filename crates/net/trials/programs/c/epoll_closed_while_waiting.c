// about: threads go on waiting in an epoll set that was closed or replaced by dup2
// upgraded: yes
#include "trial.h"

static int set;

static struct epoll_event want = {.events = EPOLLIN, .data.u32 = 1};

static void wait_here(int timeout)
{
    struct epoll_event got = {0};
    int rc = (int)MUST(epoll_wait(set, &got, 1, timeout));
    say("waited: %d, %u", rc, got.data.u32);
}

static void waiting(void)
{
    wait_here(LONG_MS);
}

/* Longer than a sleep that looks after idle channels in between. */
static void waiting_in_vain(void)
{
    wait_here(1500);
}

static void server(int fd)
{
    for (int i = 0; i < 5; i++) {
        meet();
        send_all(fd, "data", 4);
        meet();
    }
    round_trips(fd, SERVER, 20, 64);
}

static void take_data(int fd)
{
    char text[4];
    recv_all(fd, text, 4);
    meet();
}

static void set_with(int fd)
{
    set = (int)MUST(epoll_create1(0));
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
}

/* What gets the number next has something to say at once. */
static int busy_set(int loud)
{
    struct epoll_event other = {.events = EPOLLIN, .data.u32 = 99};
    int busy = (int)MUST(epoll_create1(0));
    say("the same number %d", busy == set);
    MUST(epoll_ctl(busy, EPOLL_CTL_ADD, loud, &other));
    return busy;
}

static void client(int fd)
{
    struct epoll_event got = {0};
    struct sleeper one, two;
    int loud[2], quiet[2];
    MUST(pipe(loud));
    MUST(pipe(quiet));
    MUST(write(loud[1], "x", 1));

    say("closed, then bytes");
    set_with(fd);
    start_sleeper(&one, waiting);
    MUST(close(set));
    meet();
    join_sleeper(&one);
    take_data(fd);

    say("closed, the number used again, the timeout passes");
    set_with(fd);
    start_sleeper(&one, waiting_in_vain);
    MUST(close(set));
    int busy = busy_set(loud[0]);
    join_sleeper(&one);
    say("the other set: %d", epoll_wait(busy, &got, 1, 0));
    MUST(close(busy));
    meet();
    take_data(fd);

    say("closed, and the connection is in another set by then");
    set_with(fd);
    start_sleeper(&one, waiting);
    MUST(close(set));
    busy = (int)MUST(epoll_create1(0));
    struct epoll_event other = {.events = EPOLLIN, .data.u32 = 2};
    MUST(epoll_ctl(busy, EPOLL_CTL_ADD, fd, &other));
    meet();
    join_sleeper(&one);
    SAY(epoll_wait(busy, &got, 1, LONG_MS));
    say("%u", got.data.u32);
    take_data(fd);
    MUST(close(busy));

    say("replaced by a pipe, two threads in it");
    set_with(fd);
    start_sleeper(&one, waiting);
    start_sleeper(&two, waiting_in_vain);
    MUST(dup2(quiet[0], set));
    join_sleeper(&two);
    meet();
    join_sleeper(&one);
    take_data(fd);
    MUST(close(set));

    say("nothing but a pipe in it");
    set = (int)MUST(epoll_create1(0));
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, quiet[0], &want));
    start_sleeper(&one, waiting);
    MUST(close(set));
    busy = busy_set(fd);
    MUST(write(quiet[1], "x", 1));
    join_sleeper(&one);
    meet();
    SAY(epoll_wait(busy, &got, 1, LONG_MS));
    take_data(fd);
    SAY(epoll_wait(busy, &got, 1, 0));
    MUST(close(busy));
    round_trips(fd, CLIENT, 20, 64);
}

int main(void)
{
    return run_pair(server, client);
}
