// about: SCM_RIGHTS with a connection, a listener and a pipe in one message: close-on-exec by flag, too little room (MSG_CTRUNC), peeked twice
// upgraded: any
#include "trial.h"

static void pass(int by, const int *fds, size_t count)
{
    char control[CMSG_SPACE(4 * sizeof(int))] = {0};
    struct iovec part = {(char *)"p", 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = CMSG_SPACE(count * sizeof(int))};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(header), fds, count * sizeof(int));
    MUST(sendmsg(by, &message, 0));
}

static int take(int by, int *fds, size_t room, int flags)
{
    char control[CMSG_SPACE(4 * sizeof(int))], byte;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = room};
    MUST(recvmsg(by, &message, flags));
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    int count = header == NULL ? 0 : (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    say("flags %#x, descriptors %d", (unsigned)message.msg_flags & ~(unsigned)MSG_CMSG_CLOEXEC, count);
    if (count > 0)
        memcpy(fds, CMSG_DATA(header), (size_t)count * sizeof(int));
    return count;
}

/* The process that is given things. */
static void receiver(int by)
{
    int fds[4];
    take(by, fds, CMSG_SPACE(3 * sizeof(int)), MSG_CMSG_CLOEXEC);
    say("close-on-exec %d %d %d", fcntl(fds[0], F_GETFD), fcntl(fds[1], F_GETFD), fcntl(fds[2], F_GETFD));
    round_trips(fds[0], CLIENT, 60, 64);
    int other = accept_at(fds[1]);
    round_trips(other, SERVER, 60, 64);
    char text[8] = {0};
    MUST(read(fds[2], text, 8));
    say("%s", text);
    take(by, fds, CMSG_SPACE(3 * sizeof(int)), MSG_PEEK); /* installs its own copies */
    round_trips(fds[0], CLIENT, 10, 64);
    take(by, fds, CMSG_LEN(sizeof(int)), 0); /* room for one */
    round_trips(fds[0], CLIENT, 10, 64);
    MUST(write(by, "k", 1));
    char byte;
    MUST(read(by, &byte, 1));
}

static void server(int fd)
{
    round_trips(fd, SERVER, 80, 64);
    meet();
    int self = connect_at("127.0.0.1", find_door());
    round_trips(self, CLIENT, 60, 64);
    meet();
    round_trips(fd, SERVER, 20, 64);
    say("end %zd", recv(fd, &(char){0}, 1, 0));
}

static void client(int fd)
{
    int pair[2], tube[2], status;
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    MUST(pipe(tube));
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
        MUST(close(fd));
        MUST(close(pair[0]));
        receiver(pair[1]);
        _exit(0);
    }
    MUST(close(pair[1]));
    round_trips(fd, CLIENT, 20, 64);
    int listener = listen_at("127.0.0.1"), port = port_of(listener);
    pass(pair[0], (int[]){fd, listener, tube[0]}, 3);
    MUST(write(tube[1], "piped", 5));
    meet();
    MUST(write(trial_meet[1], &port, sizeof port));
    meet();
    pass(pair[0], (int[]){fd, listener, tube[0]}, 3);
    char byte;
    MUST(read(pair[0], &byte, 1));
    MUST(close(fd));
    MUST(write(pair[0], "k", 1));
    MUST(waitpid(child, &status, 0));
    say("child %d", status);
}

int main(void)
{
    return run_pair_at("127.0.0.1", "127.0.0.1", true, server, client);
}
