// about: io_uring by syscall(2) on connections that were upgraded, with bytes on their way; files and another connection are left alone
// upgraded: yes
#include "each_way.h"
#include "uring.h"

#define WAYS 9
static int listener, port;

static void server(int fd)
{
    serve_each_way(fd, listener, WAYS);
}

static void pass(struct uring *ring, int fd, int *passed)
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
    say("sendmsg %d", uring_move(ring, IORING_OP_SENDMSG, pair[0], &message, 1));
    MUST(recvmsg(pair[1], &message, 0));
    memcpy(passed, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof *passed);
    MUST(close(pair[0]));
    MUST(close(pair[1]));
}

/* Receives "in flight" and sends "by ring" the given way. */
static void talk(struct uring *ring, int way, int one)
{
    char text[16] = {0}, answer[] = "by ring";
    struct iovec into = {text, 9}, from = {answer, 7};
    int passed = one;
    switch (way) {
    case 0:
        uring_recv_all(ring, one, text, 9);
        say("send %d", uring_move(ring, IORING_OP_SEND, one, answer, 7));
        break;
    case 1:
        say("readv %d", uring_move(ring, IORING_OP_READV, one, &into, 1));
        say("writev %d", uring_move(ring, IORING_OP_WRITEV, one, &from, 1));
        break;
    case 2: /* as a registered file; the number of it is another descriptor's */
        say("register %ld", uring_call(SYS_io_uring_register, ring->fd, IORING_REGISTER_FILES, (long)&one, 1));
        uring_prepare(ring, IORING_OP_RECV, 0, text, 9)->flags = IOSQE_FIXED_FILE;
        say("recv %d", uring_perform(ring));
        uring_prepare(ring, IORING_OP_SEND, 0, answer, 7)->flags = IOSQE_FIXED_FILE;
        say("send %d", uring_perform(ring));
        say("unregister %ld", uring_call(SYS_io_uring_register, ring->fd, IORING_UNREGISTER_FILES, 0, 0));
        break;
    case 3: { /* registered by a request */
        int none = -1;
        say("register %ld", uring_call(SYS_io_uring_register, ring->fd, IORING_REGISTER_FILES, (long)&none, 1));
        say("update %d", uring_move(ring, IORING_OP_FILES_UPDATE, -1, &one, 1));
        uring_prepare(ring, IORING_OP_RECV, 0, text, 9)->flags = IOSQE_FIXED_FILE;
        say("recv %d", uring_perform(ring));
        say("unregister %ld", uring_call(SYS_io_uring_register, ring->fd, IORING_UNREGISTER_FILES, 0, 0));
        send_all(one, answer, 7);
        break;
    }
    case 4: /* polled by the ring, read by libc */
        uring_prepare(ring, IORING_OP_POLL_ADD, one, NULL, 0)->poll32_events = POLLIN;
        say("poll %d", uring_perform(ring) & POLLIN);
        recv_all(one, text, 9);
        send_all(one, answer, 7);
        break;
    case 5: { /* registered with epoll by the ring */
        int set = (int)MUST(epoll_create1(0));
        struct epoll_event event = {.events = EPOLLIN, .data.fd = 77}, seen = {0};
        uring_prepare(ring, IORING_OP_EPOLL_CTL, set, &event, EPOLL_CTL_ADD)->off = (uint64_t)one;
        say("epoll_ctl %d", uring_perform(ring));
        say("epoll_wait %d", epoll_wait(set, &seen, 1, LONG_MS));
        say("event %#x %d", seen.events, seen.data.fd);
        MUST(close(set));
        recv_all(one, text, 9);
        send_all(one, answer, 7);
        break;
    }
    case 6: { /* a set of libc's that the ring polls */
        int set = (int)MUST(epoll_create1(0));
        struct epoll_event event = {.events = EPOLLIN, .data.fd = 78};
        MUST(epoll_ctl(set, EPOLL_CTL_ADD, one, &event));
        uring_prepare(ring, IORING_OP_POLL_ADD, set, NULL, 0)->poll32_events = POLLIN;
        say("poll %d", uring_perform(ring) & POLLIN);
        recv_all(one, text, 9);
        send_all(one, answer, 7);
        MUST(close(set));
        break;
    }
    case 7: /* passed to somebody else by the ring */
        pass(ring, one, &passed);
        recv_all(passed, text, 9);
        send_all(passed, answer, 7);
        round_trips(passed, CLIENT, 20, 64);
        MUST(close(passed));
        break;
    default: /* closed by the ring, while a copy goes on */
        passed = (int)MUST(dup(one));
        say("close %d", uring_move(ring, IORING_OP_CLOSE, one, NULL, 0));
        recv_all(passed, text, 9);
        send_all(passed, answer, 7);
        round_trips(passed, CLIENT, 20, 64);
        MUST(close(passed));
        say("%s", text);
        return;
    }
    say("%s", text);
    if (way != 7)
        round_trips(one, CLIENT, 20, 64);
    MUST(close(one));
}

static void client(int fd)
{
    struct uring ring = uring_begin(0);
    int file = (int)MUST(open("uring", O_RDWR | O_CREAT | O_TRUNC, 0600));
    for (int way = 0; way < WAYS; way++) {
        say("way %d, file %d", way, uring_move(&ring, IORING_OP_WRITE, file, "text", 4));
        int one = connect_at("127.0.0.1", port);
        round_trips(one, CLIENT, 60, 64);
        await_bytes(one, 9);
        meet();
        talk(&ring, way, one);
    }
    MUST(close(ring.fd));
    MUST(close(file));
    prove(fd, CLIENT);
}

int main(void)
{
    listener = listen_at("127.0.0.1");
    port = port_of(listener);
    return run_pair(server, client);
}
