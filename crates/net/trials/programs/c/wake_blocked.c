// about: data and EOF wake a thread that sleeps in each blocking call, and a full ring wakes the sender
// upgraded: yes
// variants: plain fortified
#include "trial.h"

static const char *const ways[] = {"recv", "read", "recvmsg", "poll", "ppoll", "select", "pselect", "epoll"};

static void sleep_in(int fd, int way)
{
    char text[8] = {0};
    struct iovec part = {text, 4};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    fd_set in;
    FD_ZERO(&in);
    FD_SET(fd, &in);
    switch (way) {
    case 0: say("recv %zd", recv(fd, text, 4, 0)); return;
    case 1: say("read %zd", read(fd, text, 4)); return;
    case 2: say("recvmsg %zd", recvmsg(fd, &message, 0)); return;
    case 3: say("poll %d", poll(&entry, 1, -1)); break;
    case 4: say("ppoll %d", ppoll(&entry, 1, NULL, NULL)); break;
    case 5: say("select %d", select(fd + 1, &in, NULL, NULL, NULL)); break;
    case 6: say("pselect %d", pselect(fd + 1, &in, NULL, NULL, NULL, NULL)); break;
    default: {
        int set = (int)MUST(epoll_create1(0));
        struct epoll_event event = {.events = EPOLLIN};
        MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
        say("epoll %d", epoll_wait(set, &event, 1, -1));
        MUST(close(set));
    }
    }
    recv_all(fd, text, 4);
}

/* The server acts only when the client is seen asleep: /proc/PID/stat says S. */
static pid_t other;
static void await_other_asleep(void)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", other);
    for (int i = 0; i < LONG_MS; i++) {
        int file = (int)MUST(open(path, O_RDONLY));
        ssize_t got = MUST(read(file, text, sizeof text - 1));
        MUST(close(file));
        text[got] = 0;
        if (strrchr(text, ')')[2] == 'S')
            return;
        poll(NULL, 0, 1);
    }
    errno = ETIMEDOUT;
    give_up("the client does not sleep");
}

static void server(int fd)
{
    static char block[4 << 20];
    MUST(read(trial_meet[0], &other, sizeof other));
    for (int way = 0; way < 8; way++) {
        meet();
        await_other_asleep();
        send_all(fd, "wake", 4);
    }
    meet();
    await_other_asleep(); /* the client has filled everything and sleeps in send */
    recv_all(fd, block, sizeof block);
    meet();
    await_other_asleep();
    MUST(close(fd));
    meet();
}

static void client(int fd)
{
    static char block[4 << 20];
    pid_t own = getpid();
    MUST(write(trial_meet[1], &own, sizeof own));
    for (int way = 0; way < 8; way++) {
        meet();
        sleep_in(fd, way);
        say("woken in %s", ways[way]);
    }
    meet();
    say("send %zd", send(fd, block, sizeof block, 0));
    meet();
    char text[4];
    say("end %zd", recv(fd, text, 4, 0));
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
