/* A ring made and used by system calls: through libc's syscall(2), of which the library sees that it
 * makes a ring, or past it. */
#ifndef URING_H
#define URING_H
#include "trial.h"
#include <linux/io_uring.h>

SHARED bool uring_unseen; /* every call goes to the kernel directly */

SHARED long uring_call(long nr, long a, long b, long c, long d)
{
    if (!uring_unseen)
        return syscall(nr, a, b, c, d, NULL, 0);
    long rc = witness_call(nr, a, b, c, d, 0);
    if (rc < 0)
        errno = (int)-rc;
    return rc < 0 ? -1 : rc;
}

struct uring {
    int fd;
    unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
    struct io_uring_sqe *entries;
    struct io_uring_cqe *results;
};

SHARED struct uring uring_begin(unsigned flags)
{
    struct io_uring_params params = {.flags = flags};
    struct uring ring = {.fd = (int)MUST(uring_call(SYS_io_uring_setup, 8, (long)&params, 0, 0))};
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

/* A request that the caller completes; uring_perform() submits it. */
SHARED struct io_uring_sqe *uring_prepare(struct uring *ring, int operation, int fd, const void *data, unsigned length)
{
    struct io_uring_sqe *entry = &ring->entries[*ring->sq_tail & *ring->sq_mask];
    memset(entry, 0, sizeof *entry);
    entry->opcode = (uint8_t)operation;
    entry->fd = fd;
    entry->addr = (uint64_t)(uintptr_t)data;
    entry->len = length;
    return entry;
}

/* Submits what was prepared and waits for its result. */
SHARED int uring_perform(struct uring *ring)
{
    unsigned tail = *ring->sq_tail, at = tail & *ring->sq_mask;
    ring->sq_array[at] = at;
    __atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
    MUST(uring_call(SYS_io_uring_enter, ring->fd, 1, 1, IORING_ENTER_GETEVENTS));
    unsigned head = *ring->cq_head;
    if (head == __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE))
        give_up("no completion");
    int result = ring->results[head & *ring->cq_mask].res;
    __atomic_store_n(ring->cq_head, head + 1, __ATOMIC_RELEASE);
    return result;
}

SHARED int uring_move(struct uring *ring, int operation, int fd, void *data, unsigned length)
{
    uring_prepare(ring, operation, fd, data, length);
    return uring_perform(ring);
}

/* Receives exactly `length` bytes; fails on the end of the stream. */
SHARED void uring_recv_all(struct uring *ring, int fd, char *data, unsigned length)
{
    while (length > 0) {
        int got = uring_move(ring, IORING_OP_RECV, fd, data, length);
        if (got <= 0)
            give_up("receive gave %d", got);
        data += got;
        length -= (unsigned)got;
    }
}
#endif
