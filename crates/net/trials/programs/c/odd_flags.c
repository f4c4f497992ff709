// about: message names, control buffers, MSG_ERRQUEUE, MSG_OOB without urgent data, and flags that TCP ignores
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    struct place self = {.length = sizeof self.addr};
    MUST(getsockname(fd, (struct sockaddr *)&self.addr, &self.length));
    SAY(sendto(fd, "addr", 4, MSG_NOSIGNAL, (struct sockaddr *)&self.addr, self.length));
    SAY(send(fd, "conf", 4, MSG_CONFIRM));
    SAY(send(fd, "eor!", 4, MSG_EOR));
    SAY(send(fd, "rout", 4, MSG_DONTROUTE));
    struct iovec part = {"name", 4};
    struct msghdr message = {.msg_name = &self.addr, .msg_namelen = self.length, .msg_iov = &part, .msg_iovlen = 1};
    SAY(sendmsg(fd, &message, 0));
    message.msg_namelen = 3;
    message.msg_flags = -1;
    SAY(sendmsg(fd, &message, 0));
    meet();
    meet();
}

static void client(int fd)
{
    char text[32] = {0}, control[64];
    struct place from;
    memset(&from, 0x5a, sizeof from);
    from.length = sizeof from.addr;
    meet();
    await_bytes(fd, 24);
    SAY(recv(fd, text, 4, MSG_ERRQUEUE | MSG_DONTWAIT));
    SAY(recv(fd, text, 1, MSG_OOB));
    SAY(recvfrom(fd, text, 4, 0, (struct sockaddr *)&from.addr, &from.length));
    say("%.4s, name of %u bytes, family %#x", text, from.length, from.addr.ss_family);
    struct iovec part = {text, 4};
    struct msghdr message = {.msg_name = &from.addr, .msg_namelen = sizeof from.addr, .msg_iov = &part, .msg_iovlen = 1,
                             .msg_control = control, .msg_controllen = sizeof control, .msg_flags = -1};
    SAY(recvmsg(fd, &message, 0));
    say("%.4s, name %u, control %zu, flags %#x", text, message.msg_namelen, (size_t)message.msg_controllen, (unsigned)message.msg_flags);
    SAY(recv(fd, text, 4, MSG_CMSG_CLOEXEC | MSG_NOSIGNAL));
    SAY(recv(fd, text, 4, 0x40000));
    SAY(recvmsg(fd, &(struct msghdr){0}, MSG_DONTWAIT));
    SAY(recv(fd, text, 32, 0));
    say("%.8s", text);
    SAY(recvmsg(fd, &(struct msghdr){0}, MSG_DONTWAIT));
    SAY(recv(fd, text, 0, MSG_DONTWAIT));
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
