// about: MSG_PEEK, MSG_WAITALL, MSG_DONTWAIT, MSG_TRUNC, MSG_MORE and wrong flags
// upgraded: yes
// variants: plain fortified
#include "trial.h"

static void server(int fd)
{
    send_all(fd, "peekaboo", 8);
    meet();
    meet(); /* the client has drained */
    meet(); /* MSG_DONTWAIT on nothing is done */
    send_all(fd, "first", 5);
    meet();
    send_all(fd, "second", 6); /* completes MSG_WAITALL */
    meet();
    send_all(fd, "discard me, keep this", 21);
    meet();
    say("more: %zd", send(fd, "held ", 5, MSG_MORE));
    say("rest: %zd", send(fd, "released", 8, 0));
    meet();
    send_all(fd, "tail", 4);
    MUST(shutdown(fd, SHUT_WR));
    meet();
}

static void client(int fd)
{
    char text[64] = {0};
    await_bytes(fd, 8);
    say("peek %zd '%s'", recv(fd, text, 4, MSG_PEEK), text);
    say("peek again %zd '%s'", recv(fd, text, 60, MSG_PEEK), text);
    struct iovec parts[2] = {{text, 2}, {text + 10, 3}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    memset(text, '.', 20);
    text[20] = 0;
    say("peek by recvmsg %zd '%s'", recvmsg(fd, &message, MSG_PEEK), text);
    memset(text, 0, sizeof text);
    say("take %zd '%s'", recv(fd, text, 60, 0), text);
    meet();
    meet();
    SAY(recv(fd, text, 60, MSG_DONTWAIT));
    SAY(recv(fd, text, 60, MSG_DONTWAIT | MSG_PEEK));
    SAY(recv(fd, text, 60, MSG_DONTWAIT | MSG_WAITALL));
    SAY(recv(fd, text, 0, MSG_DONTWAIT));
    SAY(recv(fd, text, 60, MSG_OOB));
    meet();
    await_bytes(fd, 5);
    meet();
    memset(text, 0, sizeof text);
    say("waitall %zd '%s'", recv(fd, text, 11, MSG_WAITALL), text);
    meet();
    await_bytes(fd, 21);
    say("trunc %zd", recv(fd, NULL, 12, MSG_TRUNC));
    memset(text, 0, sizeof text);
    say("after trunc %zd '%s'", recv(fd, text, 60, 0), text);
    meet();
    memset(text, 0, sizeof text);
    say("more %zd '%s'", recv(fd, text, 13, MSG_WAITALL), text);
    meet();
    memset(text, 0, sizeof text);
    say("waitall to the end %zd '%s'", recv(fd, text, 60, MSG_WAITALL), text);
    SAY(recv(fd, text, 60, MSG_PEEK));
    SAY(recv(fd, text, 60, MSG_WAITALL));
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
