// about: a reset met by each call in turn: the first one takes ECONNRESET, whichever it is, and the ones behind it see an end or EPIPE
// upgraded: yes
#include "trial.h"

enum { WAYS = 9 };
static const char *const names[] = {"read", "readv", "recvmsg", "recvmmsg", "peek", "write", "sendmsg", "sendmmsg", "SO_ERROR"};

static ssize_t first(int fd, int way)
{
    char text[8] = "x";
    struct iovec part = {text, 8};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    struct mmsghdr many = {.msg_hdr = message};
    socklen_t length = sizeof errno;
    switch (way) {
    case 0: return read(fd, text, 8);
    case 1: return readv(fd, &part, 1);
    case 2: return recvmsg(fd, &message, 0);
    case 3: return recvmmsg(fd, &many, 1, 0, NULL);
    case 4: return recv(fd, text, 8, MSG_PEEK);
    case 5: return write(fd, text, 8);
    case 6: return sendmsg(fd, &message, 0);
    case 7: return sendmmsg(fd, &many, 1, 0);
    default: MUST(getsockopt(fd, SOL_SOCKET, SO_ERROR, &errno, &length)); return -1;
    }
}

static void server(int fd)
{
    int listener = open_door();
    for (int way = 0; way < WAYS; way++)
        close_hard(warm_server(listener));
    close_hard(fd);
}

static void client(int fd)
{
    char text[8];
    int port = find_door();
    count_signals(SIGPIPE, 0);
    for (int way = 0; way < WAYS; way++) {
        int other = warm_client(port);
        await_event(other, POLLERR);
        say_rc(names[way], first(other, way));
        int error = -1;
        socklen_t length = sizeof error;
        SAY(getsockopt(other, SOL_SOCKET, SO_ERROR, &error, &length));
        say("error %d, signals %d", error, (int)trial_signals);
        SAY(recv(other, text, 8, 0));
        SAY(recv(other, text, 8, MSG_DONTWAIT | MSG_PEEK));
        SAY(send(other, text, 8, 0));
        say("signals %d", (int)trial_signals);
        trial_signals = 0;
        struct pollfd entry = {.fd = other, .events = POLLIN | POLLOUT | POLLRDHUP};
        SAY(poll(&entry, 1, 0));
        say("events %#x", (unsigned)entry.revents);
        SAY(shutdown(other, SHUT_RDWR));
        MUST(close(other));
    }
    await_event(fd, POLLERR);
}

int main(void)
{
    return run_pair(server, client);
}
