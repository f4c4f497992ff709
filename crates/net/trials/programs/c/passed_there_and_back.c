// about: a connection that goes to another process by SCM_RIGHTS and comes back, used at every stop
// upgraded: yes
#include "trial.h"

static void pass(int through, int fd)
{
    char byte = 'f', control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    MUST(sendmsg(through, &message, 0));
}

static int take(int through)
{
    char byte, control[CMSG_SPACE(sizeof(int))];
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    int fd;
    MUST(recvmsg(through, &message, 0));
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

static void server(int fd)
{
    for (int i = 0; i < 6; i++) {
        char text[8] = {0};
        recv_all(fd, text, 4);
        say("%s", text);
        send_all(fd, text, 4);
    }
    round_trips(fd, SERVER, 100, 64);
}

static void ask(int fd, const char *text)
{
    char back[8] = {0};
    send_all(fd, text, 4);
    recv_all(fd, back, 4);
    if (strcmp(text, back) != 0)
        give_up("%s is not %s", back, text);
}

static void client(int fd)
{
    int pair[2], status;
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        MUST(close(fd));
        for (int i = 0; i < 3; i++) {
            int one = take(pair[1]);
            ask(one, "away");
            pass(pair[1], one);
            MUST(close(one));
        }
        _exit(0);
    }
    for (int i = 0; i < 3; i++) {
        ask(fd, "home");
        pass(pair[0], fd);
        MUST(close(fd));
        fd = take(pair[0]);
    }
    MUST(waitpid(child, &status, 0));
    say("child ended %d", status);
    round_trips(fd, CLIENT, 100, 64);
}

int main(void)
{
    return run_pair(server, client);
}
