// about: a listener passed by SCM_RIGHTS is accepted on by its receiver, whose connections are upgraded
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
    int pair[2], status, listener = listen_at("127.0.0.1"), port = port_of(listener);
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        MUST(close(listener));
        int passed = take(pair[1]);
        for (int i = 0; i < 3; i++) {
            int one = accept_at(passed);
            warm_up(one, SERVER);
            MUST(close(one));
        }
        _exit(0);
    }
    pass(pair[0], listener);
    MUST(close(listener));
    MUST(write(trial_meet[1], &port, sizeof port));
    MUST(waitpid(child, &status, 0));
    say("receiver ended %d", status);
    round_trips(fd, SERVER, 20, 64);
}

static void client(int fd)
{
    int port;
    MUST(read(trial_meet[0], &port, sizeof port));
    for (int i = 0; i < 3; i++) {
        int one = connect_at("127.0.0.1", port);
        warm_up(one, CLIENT);
        MUST(close(one));
    }
    round_trips(fd, CLIENT, 20, 64);
}

int main(void)
{
    return run_pair(server, client);
}
