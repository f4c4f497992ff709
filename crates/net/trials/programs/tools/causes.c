/* One end of a connection that does, when told, what sends it back to TCP.
 *
 * causes listen | causes connect PORT     prints "port N" or "connected", then "fd N"
 * stdin, each answered by "ok" or by what is said here:
 * "round N": N round trips; "send N", "receive N": so many bytes (what came is checked);
 * "finish": shutdown; "end": receives once more and prints the result; any other word: that cause. */
#include "uring.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <spawn.h>
#include <stddef.h>

static uint64_t sent, received;
static enum role role;

static void send_some(int fd, size_t count)
{
    for (; count > 0; count--, sent++) {
        unsigned char byte = pattern((uint64_t)role, sent);
        send_all(fd, &byte, 1);
    }
}

static void receive_some(int fd, size_t count)
{
    for (; count > 0; count--, received++) {
        unsigned char byte;
        recv_all(fd, &byte, 1);
        if (byte != pattern((uint64_t)!role, received)) {
            errno = EBADMSG;
            give_up("byte %llu is wrong", (unsigned long long)received);
        }
    }
}

/* A filter that allows everything, but for one call that gets an error. */
static struct sock_fprog filter_of(int number)
{
    static struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    rules[1].k = (unsigned)number;
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    return (struct sock_fprog){.len = 4, .filter = rules};
}

static void pass(int fd)
{
    int pair[2];
    char byte = 'f', control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    MUST(sendmsg(pair[0], &message, 0));
}

static void spawn(int fd, bool as_output)
{
    char *const words[] = {"true", NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status;
    MUST(fcntl(fd, F_SETFD, as_output ? FD_CLOEXEC : 0));
    posix_spawn_file_actions_init(&actions);
    if (as_output)
        posix_spawn_file_actions_adddup2(&actions, fd, 1);
    if (posix_spawn(&child, "/bin/true", &actions, NULL, words, environ) != 0)
        give_up("posix_spawn");
    MUST(waitpid(child, &status, 0));
}

/* Closes, past the library, the sockets by which it asks the kernel and rings bells. */
static void lose_descriptors(void)
{
    for (int fd = 3; fd < 1200; fd++) {
        struct sockaddr_storage name;
        socklen_t length = sizeof name;
        if (getsockname(fd, (struct sockaddr *)&name, &length) != 0)
            continue;
        bool unnamed = name.ss_family == AF_UNIX && length == sizeof(sa_family_t);
        if (name.ss_family == AF_NETLINK || unnamed)
            MUST(witness_call(SYS_close, fd, 0, 0, 0, 0));
    }
}

static void set_option(int fd, int level, int option, int value)
{
    setsockopt(fd, level, option, &value, sizeof value); /* the kernel may lack what is asked for */
}

/* What the main table of the test names; false for a word that is none. */
static bool cause(const char *word, int fd)
{
    static char *const none[] = {NULL};
    int on = 1;
    if (strcmp(word, "MSG_OOB") == 0)
        MUST(send(fd, "!", 1, MSG_OOB));
    else if (strcmp(word, "fdopen") == 0)
        MUST(fdopen(fd, "r") == NULL ? -1 : 0);
    else if (strcmp(word, "dprintf") == 0)
        MUST(dprintf(fd, "%s", "printed"));
    else if (strcmp(word, "dup2") == 0)
        MUST(dup2(fd, STDERR_FILENO));
    else if (strcmp(word, "SCM_RIGHTS") == 0)
        pass(fd);
    else if (strcmp(word, "execve") == 0)
        execve("/nowhere/at/all", none, none);
    else if (strcmp(word, "posix_spawn") == 0)
        spawn(fd, false);
    else if (strcmp(word, "adddup2") == 0)
        spawn(fd, true);
    else if (strcmp(word, "SO_ZEROCOPY") == 0)
        set_option(fd, SOL_SOCKET, SO_ZEROCOPY, 1);
    else if (strcmp(word, "SO_OOBINLINE") == 0)
        set_option(fd, SOL_SOCKET, SO_OOBINLINE, 1);
    else if (strcmp(word, "SO_TIMESTAMPING") == 0)
        set_option(fd, SOL_SOCKET, SO_TIMESTAMPING, 1 << 4);
    else if (strcmp(word, "SO_RCVLOWAT") == 0)
        set_option(fd, SOL_SOCKET, SO_RCVLOWAT, 4);
    else if (strcmp(word, "TCP_ULP") == 0)
        setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", 3);
    else if (strcmp(word, "O_ASYNC") == 0)
        MUST(fcntl(fd, F_SETFL, O_RDWR | O_ASYNC));
    else if (strcmp(word, "FIOASYNC") == 0)
        MUST(ioctl(fd, FIOASYNC, &on));
    else if (strcmp(word, "lost") == 0)
        lose_descriptors();
    else
        return false;
    return true;
}

/* Causes by calls that a filter, a ring or a set makes, or that pass the library by. */
static bool other_cause(const char *word, int fd)
{
    if (strcmp(word, "seccomp") == 0) {
        struct sock_fprog filter = filter_of(-1);
        MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter));
    } else if (strcmp(word, "memory") == 0) {
        struct sock_fprog filter = filter_of(SYS_fallocate);
        MUST(witness_call(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (long)&filter, 0, 0));
    } else if (strcmp(word, "epoll") == 0) {
        int set = (int)MUST(witness_call(SYS_epoll_create1, 0, 0, 0, 0, 0));
        struct epoll_event event = {.events = EPOLLIN};
        MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    } else if (strcmp(word, "io_uring") == 0) {
        struct uring ring = uring_begin(0);
        uring_prepare(&ring, IORING_OP_POLL_ADD, fd, NULL, 0)->poll32_events = POLLOUT;
        uring_perform(&ring);
    } else if (strcmp(word, "recvmmsg") == 0) {
        char byte;
        struct iovec part = {&byte, 1};
        struct mmsghdr message = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
        recvmmsg(fd, &message, 1, MSG_DONTWAIT, NULL);
    } else if (strcmp(word, "outside") == 0) {
        MUST(witness_call(SYS_write, fd, (long)"beside", 6, 0, 0));
    } else {
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    char line[64], word[32];
    char byte;
    int fd, count = 0;
    MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
    role = argc == 2 ? SERVER : CLIENT;
    if (role == SERVER) {
        int listener = listen_at("127.0.0.1");
        printf("port %d\n", port_of(listener));
        fflush(stdout);
        fd = accept_at(listener);
    } else {
        fd = connect_at("127.0.0.1", atoi(argv[2]));
    }
    printf("fd %d\n", fd);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        const char *answer = "ok";
        if (sscanf(line, "%31s %d", word, &count) < 1)
            break;
        if (strcmp(word, "round") == 0)
            round_trips(fd, role, count, 64);
        else if (strcmp(word, "send") == 0)
            send_some(fd, (size_t)count);
        else if (strcmp(word, "receive") == 0)
            receive_some(fd, (size_t)count);
        else if (strcmp(word, "finish") == 0)
            MUST(shutdown(fd, SHUT_WR));
        else if (strcmp(word, "end") == 0)
            answer = recv(fd, &byte, 1, 0) == 0 ? "end" : strerrorname_np(errno);
        else if (!cause(word, fd) && !other_cause(word, fd))
            return 2;
        printf("%s\n", answer);
        fflush(stdout);
    }
    return 0;
}
