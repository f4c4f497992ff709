// about: shutdown by another thread wakes readv, recvmsg, recvmmsg, splice, MSG_WAITALL, ppoll, pselect and epoll_pwait
// upgraded: yes
#include "trial.h"

enum { WAYS = 8 };
static int line, way, tube[2];

static void blocked(void)
{
    char text[8];
    struct iovec part = {text, 8};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    struct mmsghdr many = {.msg_hdr = message, .msg_len = 77};
    struct pollfd entry = {.fd = line, .events = POLLIN};
    struct epoll_event event = {.events = EPOLLIN};
    int set = -1;
    fd_set in;
    switch (way) {
    case 0: SAY(readv(line, &part, 1)); break;
    case 1: SAY(recvmsg(line, &message, 0)); break;
    case 2:
        SAY(recvmmsg(line, &many, 1, 0, NULL));
        say("length %u", many.msg_len);
        break;
    case 3: SAY(splice(line, NULL, tube[1], NULL, 8, 0)); break;
    case 4: SAY(recv(line, text, 8, MSG_WAITALL)); break;
    case 5:
        SAY(ppoll(&entry, 1, NULL, NULL));
        say("%#x", (unsigned)entry.revents);
        break;
    case 6:
        FD_ZERO(&in);
        FD_SET(line, &in);
        SAY(pselect(line + 1, &in, NULL, NULL, NULL, NULL));
        break;
    default:
        set = (int)MUST(epoll_create1(0));
        MUST(epoll_ctl(set, EPOLL_CTL_ADD, line, &event));
        SAY(epoll_pwait(set, &event, 1, -1, NULL));
        say("%#x", event.events);
        MUST(close(set));
    }
}

static void server(int fd)
{
    int listener = open_door();
    char byte;
    for (int i = 0; i < WAYS; i++) {
        int other = warm_server(listener);
        say("end %zd", recv(other, &byte, 1, 0));
        MUST(close(other));
    }
    MUST(close(fd));
}

static void client(int fd)
{
    struct sleeper sleeper;
    int port = find_door();
    MUST(pipe(tube));
    for (way = 0; way < WAYS; way++) {
        line = warm_client(port);
        start_sleeper(&sleeper, blocked);
        long rc = shutdown(line, SHUT_RDWR);
        join_sleeper(&sleeper);
        say("shutdown %ld", rc);
        MUST(close(line));
    }
    MUST(close(fd));
}

int main(void)
{
    return run_pair(server, client);
}
