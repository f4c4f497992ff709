// about: the end of the stream in every receive call, behind the last bytes: a count, then 0, whichever call it is
// upgraded: yes
#include "trial.h"

enum { WAYS = 7 };
static const char *const names[] = {"read", "recv", "readv", "recvfrom", "recvmsg", "recvmmsg", "preadv2"};

static ssize_t take(int fd, int way, int flags)
{
    char text[32];
    struct iovec parts[2] = {{text, 3}, {text + 3, 29}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2, .msg_flags = -1};
    struct mmsghdr many = {.msg_hdr = message};
    switch (way) {
    case 0: return read(fd, text, 32);
    case 1: return recv(fd, text, 32, flags);
    case 2: return readv(fd, parts, 2);
    case 3: return recvfrom(fd, text, 32, flags, NULL, NULL);
    case 4: {
        ssize_t got = recvmsg(fd, &message, flags);
        say("  flags %#x", (unsigned)message.msg_flags);
        return got;
    }
    case 5: return recvmmsg(fd, &many, 1, flags, NULL) == 1 ? (ssize_t)many.msg_len : -1;
    default: return preadv2(fd, parts, 2, -1, 0);
    }
}

static void server(int fd)
{
    int listener = open_door();
    for (int way = 0; way < WAYS; way++) {
        int other = warm_server(listener);
        send_all(other, "the end", 7);
        MUST(shutdown(other, SHUT_WR));
        char byte;
        say("end %zd", recv(other, &byte, 1, 0));
        MUST(close(other));
    }
    MUST(close(fd));
}

static void client(int fd)
{
    int port = find_door();
    for (int way = 0; way < WAYS; way++) {
        int other = warm_client(port);
        await_event(other, POLLRDHUP);
        say("[%s]", names[way]);
        say_rc("peek", take(other, way, MSG_PEEK));
        if (way != 0 && way != 2 && way != 6)
            say_rc("all of it", take(other, way, MSG_WAITALL));
        say_rc("end", take(other, way, 0));
        say_rc("end again", take(other, way, MSG_DONTWAIT));
        for (int their = 0; their < WAYS; their++)
            if (take(other, their, MSG_WAITALL) != 0)
                say("%s after %s has no end", names[their], names[way]);
        MUST(close(other));
    }
    MUST(close(fd));
}

int main(void)
{
    return run_pair(server, client);
}
