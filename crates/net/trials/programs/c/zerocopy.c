// about: SO_ZEROCOPY: sends with MSG_ZEROCOPY on what was an upgraded connection, their completions from MSG_ERRQUEUE, POLLERR meanwhile
// upgraded: yes
#include "trial.h"
#include <linux/errqueue.h>

static void complete(int fd)
{
    char control[128];
    struct msghdr message = {.msg_control = control, .msg_controllen = sizeof control};
    struct pollfd entry = {.fd = fd};
    SAY(poll(&entry, 1, LONG_MS));
    say("events %#x", (unsigned)entry.revents);
    SAY(recvmsg(fd, &message, MSG_ERRQUEUE));
    say("error queue %d", (message.msg_flags & MSG_ERRQUEUE) != 0);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header == NULL)
        return;
    struct sock_extended_err *told = (void *)CMSG_DATA(header);
    say("origin %d, sends %u to %u", told->ee_origin, told->ee_info, told->ee_data);
}

static void server(int fd)
{
    static char block[40000];
    for (int i = 0; i < 3; i++) {
        recv_all(fd, block, sizeof block);
        int wrong = 0;
        for (size_t at = 0; at < sizeof block; at++)
            wrong += (unsigned char)block[at] != pattern((uint64_t)i, at);
        say("wrong %d", wrong);
        send_all(fd, "k", 1);
    }
    round_trips(fd, SERVER, 20, 64);
    MUST(shutdown(fd, SHUT_WR));
}

static void client(int fd)
{
    static char block[40000];
    int on = 1;
    char byte;
    SAY(setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on));
    for (int i = 0; i < 3; i++) {
        for (size_t at = 0; at < sizeof block; at++)
            block[at] = (char)pattern((uint64_t)i, at);
        SAY(send(fd, block, sizeof block, MSG_ZEROCOPY));
        recv_all(fd, &byte, 1);
        complete(fd);
    }
    SAY(recvmsg(fd, &(struct msghdr){0}, MSG_ERRQUEUE));
    round_trips(fd, CLIENT, 20, 64);
    say("end %zd", recv(fd, &byte, 1, 0));
}

int main(void)
{
    return run_pair(server, client);
}
