// about: raw io_uring sends and receives on a connection that libc calls have not touched: it stays on TCP
// upgraded: no
#include "trial.h"
#include <linux/io_uring.h>

struct uring {
    int fd;
    unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
    struct io_uring_sqe *entries;
    struct io_uring_cqe *results;
};

static struct uring begin(void)
{
    struct io_uring_params params = {0};
    struct uring ring = {.fd = (int)MUST(syscall(SYS_io_uring_setup, 8, &params))};
    size_t sq = params.sq_off.array + params.sq_entries * sizeof(unsigned);
    size_t cq = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
    char *to = mmap(NULL, sq, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQ_RING);
    char *from = mmap(NULL, cq, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_CQ_RING);
    ring.entries = mmap(NULL, params.sq_entries * sizeof *ring.entries, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQES);
    ring.sq_tail = (unsigned *)(to + params.sq_off.tail);
    ring.sq_mask = (unsigned *)(to + params.sq_off.ring_mask);
    ring.sq_array = (unsigned *)(to + params.sq_off.array);
    ring.cq_head = (unsigned *)(from + params.cq_off.head);
    ring.cq_tail = (unsigned *)(from + params.cq_off.tail);
    ring.cq_mask = (unsigned *)(from + params.cq_off.ring_mask);
    ring.results = (struct io_uring_cqe *)(from + params.cq_off.cqes);
    return ring;
}

static int perform(struct uring *ring, int operation, int fd, void *data, unsigned length)
{
    unsigned tail = *ring->sq_tail, at = tail & *ring->sq_mask;
    memset(&ring->entries[at], 0, sizeof ring->entries[at]);
    ring->entries[at].opcode = (uint8_t)operation;
    ring->entries[at].fd = fd;
    ring->entries[at].addr = (uint64_t)(uintptr_t)data;
    ring->entries[at].len = length;
    ring->sq_array[at] = at;
    __atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
    MUST(syscall(SYS_io_uring_enter, ring->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0));
    unsigned head = *ring->cq_head;
    if (head == __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE))
        give_up("no completion");
    int result = ring->results[head & *ring->cq_mask].res;
    __atomic_store_n(ring->cq_head, head + 1, __ATOMIC_RELEASE);
    return result;
}

static void server(int fd)
{
    char text[64] = {0};
    for (int i = 0; i < 100; i++) {
        recv_all(fd, text, 64);
        send_all(fd, text, 64);
    }
    prove(fd, SERVER);
    recv_all(fd, text, 5);
    say("%.5s", text);
    send_all(fd, "after", 5);
    say("end %zd", recv(fd, text, 1, 0));
}

static void client(int fd)
{
    struct uring ring = begin();
    char text[64] = {0};
    int wrong = 0;
    for (int i = 0; i < 100; i++) {
        memset(text, i, sizeof text);
        wrong += perform(&ring, IORING_OP_SEND, fd, text, sizeof text) != sizeof text;
        for (unsigned got = 0; got < sizeof text;) {
            int part = perform(&ring, IORING_OP_RECV, fd, text + got, (unsigned)sizeof text - got);
            if (part <= 0)
                give_up("receive gave %d", part);
            got += (unsigned)part;
        }
        wrong += text[0] != (char)i;
    }
    say("wrong %d", wrong);
    prove(fd, CLIENT); /* libc's calls may follow: their totals tell that others came before */
    send_all(fd, "libc!", 5);
    memset(text, 0, sizeof text);
    say("%d %s", perform(&ring, IORING_OP_RECV, fd, text, 5), text);
    int file = (int)MUST(open("uring", O_RDWR | O_CREAT | O_TRUNC, 0600));
    say("file %d", perform(&ring, IORING_OP_WRITE, file, text, 5));
    MUST(close(file));
    MUST(close(ring.fd));
    MUST(close(fd));
}

int main(void)
{
    return run_pair_at("127.0.0.1", "127.0.0.1", true, server, client);
}
