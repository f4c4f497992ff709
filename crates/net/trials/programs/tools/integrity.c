/* One end of a connection that pours a pattern both ways through every send
 * and receive call, in random sizes, and checks each byte by its position.
 *
 * integrity listen SEED TOTAL MODE          prints "port N"
 * integrity connect SEED TOTAL MODE PORT
 * MODE: threads (a sending and a receiving thread, blocking calls), poll (one
 * thread, non-blocking), exec (as poll; now and then the program replaces itself
 * by exec and goes on where it was).
 * Prints a dot per 256 KiB received, then "done SENT RECEIVED", what TCP itself carried, and how
 * often the connection moved to a channel and back since the last exec. */
#include "trial.h"
#include <sys/sendfile.h>

#define LARGEST 200000
#define DOT (256u << 10)

struct end {
    int fd;
    bool listening, blocking;
    uint64_t seed, total, sent, received, dice, calls;
    bool finished_sending, finished_receiving;
};

static uint64_t roll(struct end *end)
{
    end->dice += 0x9E3779B97F4A7C15u;
    uint64_t mixed = end->dice;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
    return mixed ^ (mixed >> 31);
}

static size_t some_size(struct end *end)
{
    static const size_t limits[] = {16, 100, 1000, 4096, 9000, 70000, LARGEST};
    return 1 + roll(end) % limits[roll(end) % 7];
}

extern ssize_t read_chk(int, void *, size_t, size_t) __asm__("__read_chk");
extern ssize_t recv_chk(int, void *, size_t, size_t, int) __asm__("__recv_chk");
extern ssize_t recvfrom_chk(int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *) __asm__("__recvfrom_chk");

/* Three parts of random lengths that cover `length` bytes. */
static void cut(struct end *end, struct iovec parts[3], unsigned char *data, size_t length)
{
    size_t first = roll(end) % (length + 1), second = roll(end) % (length - first + 1);
    parts[0] = (struct iovec){data, first};
    parts[1] = (struct iovec){data + first, second};
    parts[2] = (struct iovec){data + first + second, length - first - second};
}

static ssize_t through_pipe(int from, int to, unsigned char *data, size_t length)
{
    (void)from;
    int tube[2];
    MUST(pipe(tube));
    if (length > 4096)
        length = 4096;
    MUST(write(tube[1], data, length));
    ssize_t sent = splice(tube[0], NULL, to, NULL, length, 0);
    int saved = errno;
    MUST(close(tube[0]));
    MUST(close(tube[1]));
    errno = saved;
    return sent;
}

static ssize_t from_file(int to, unsigned char *data, size_t length)
{
    int file = (int)MUST(memfd_create("block", MFD_CLOEXEC));
    MUST(write(file, data, length));
    off_t at = 0;
    ssize_t sent = sendfile(to, file, &at, length);
    int saved = errno;
    MUST(close(file));
    errno = saved;
    return sent;
}

static ssize_t send_some(struct end *end, unsigned char *data, size_t length)
{
    struct iovec parts[3];
    cut(end, parts, data, length);
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
    struct mmsghdr many[2] = {{.msg_hdr = {.msg_iov = parts, .msg_iovlen = 1}},
                              {.msg_hdr = {.msg_iov = parts + 1, .msg_iovlen = 2}}};
    int fd = end->fd;
    switch (roll(end) % 11) {
    case 0: return write(fd, data, length);
    case 1: return send(fd, data, length, MSG_NOSIGNAL);
    case 2: return sendto(fd, data, length, 0, NULL, 0);
    case 3: return writev(fd, parts, 3);
    case 4: return sendmsg(fd, &message, 0);
    case 5: {
        int done = sendmmsg(fd, many, 2, 0);
        if (done <= 0)
            return done;
        return (ssize_t)many[0].msg_len + (done == 2 ? (ssize_t)many[1].msg_len : 0);
    }
    case 6: return pwritev2(fd, parts, 3, -1, 0);
    case 7: return send(fd, data, length, MSG_DONTWAIT);
    case 8: return send(fd, data, length, MSG_MORE);
    case 9: return through_pipe(-1, fd, data, length);
    default: return from_file(fd, data, length);
    }
}

static ssize_t to_pipe(int from, unsigned char *data, size_t length)
{
    int tube[2];
    MUST(pipe(tube));
    if (length > 4096)
        length = 4096;
    ssize_t got = splice(from, NULL, tube[1], NULL, length, 0);
    int saved = errno;
    if (got > 0)
        MUST(read(tube[0], data, (size_t)got));
    MUST(close(tube[0]));
    MUST(close(tube[1]));
    errno = saved;
    return got;
}

static ssize_t recv_some(struct end *end, unsigned char *data, size_t length)
{
    struct iovec parts[3];
    cut(end, parts, data, length);
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
    struct mmsghdr many[1] = {{.msg_hdr = message}};
    int fd = end->fd;
    switch (roll(end) % 13) {
    case 0: return read(fd, data, length);
    case 1: return recv(fd, data, length, 0);
    case 2: return recvfrom(fd, data, length, 0, NULL, NULL);
    case 3: return readv(fd, parts, 3);
    case 4: return recvmsg(fd, &message, 0);
    case 5: {
        int done = recvmmsg(fd, many, 1, 0, NULL);
        return done <= 0 ? done : (ssize_t)many[0].msg_len;
    }
    case 6: return preadv2(fd, parts, 3, -1, 0);
    case 7: return recv(fd, data, length, MSG_DONTWAIT);
    case 8: return read_chk(fd, data, length, LARGEST);
    case 9: return recv_chk(fd, data, length, LARGEST, 0);
    case 10: return recvfrom_chk(fd, data, length, LARGEST, MSG_WAITALL, NULL, NULL);
    case 11: return to_pipe(fd, data, length);
    default: {
        ssize_t peeked = recv(fd, data, length, MSG_PEEK); /* what was peeked must then be read */
        if (peeked <= 0)
            return peeked;
        unsigned char *again = malloc((size_t)peeked);
        ssize_t got = MUST(recv(fd, again, (size_t)peeked, 0));
        if (memcmp(data, again, (size_t)got) != 0) {
            errno = EBADMSG;
            give_up("peeked and read differ at %llu", (unsigned long long)end->received);
        }
        free(again);
        return got;
    }
    }
}

static bool must_wait(void)
{
    return errno == EAGAIN || errno == EINTR;
}

/* One send call; false when it would block. */
static bool send_step(struct end *end, unsigned char *data)
{
    size_t length = some_size(end);
    if (length > end->total - end->sent)
        length = (size_t)(end->total - end->sent);
    for (size_t i = 0; i < length; i++)
        data[i] = pattern(end->seed * 2 + end->listening, end->sent + i);
    ssize_t sent = length == 0 ? 0 : send_some(end, data, length);
    if (sent < 0) {
        if (!must_wait())
            give_up("send at %llu", (unsigned long long)end->sent);
        return false;
    }
    end->sent += (uint64_t)sent;
    if (end->sent == end->total) {
        MUST(shutdown(end->fd, SHUT_WR));
        end->finished_sending = true;
    }
    return true;
}

/* One receive call; false when it would block. */
static bool recv_step(struct end *end, unsigned char *data)
{
    ssize_t got = recv_some(end, data, some_size(end));
    if (got < 0) {
        if (!must_wait())
            give_up("receive at %llu", (unsigned long long)end->received);
        return false;
    }
    if (got == 0)
        end->finished_receiving = true;
    for (ssize_t i = 0; i < got; i++)
        if (data[i] != pattern(end->seed * 2 + !end->listening, end->received + (uint64_t)i)) {
            errno = EBADMSG;
            give_up("byte %llu is wrong", (unsigned long long)(end->received + (uint64_t)i));
        }
    uint64_t before = end->received / DOT;
    end->received += (uint64_t)got;
    for (; before < end->received / DOT; before++)
        MUST(write(STDOUT_FILENO, ".", 1));
    return true;
}

static void await(struct end *end, short events)
{
    struct pollfd entry = {.fd = end->fd, .events = events};
    poll(&entry, 1, -1);
}

static void *send_thread(void *argument)
{
    struct end own = *(struct end *)argument; /* its own dice and counts */
    unsigned char *data = malloc(LARGEST);
    own.dice ^= 0x5EED;
    while (!own.finished_sending)
        if (!send_step(&own, data))
            await(&own, POLLOUT);
    free(data);
    ((struct end *)argument)->sent = own.sent;
    return NULL;
}

static void by_threads(struct end *end)
{
    pthread_t thread;
    unsigned char *data = malloc(LARGEST);
    MUST(pthread_create(&thread, NULL, send_thread, end));
    while (!end->finished_receiving)
        if (!recv_step(end, data))
            await(end, POLLIN);
    MUST(pthread_join(thread, NULL));
    free(data);
}

static void replace_self(struct end *end)
{
    char words[9][32];
    char *args[10] = {"integrity"};
    uint64_t values[8] = {end->listening, end->seed,     end->total, (uint64_t)end->fd,
                          end->sent,      end->received, end->dice,  end->finished_sending};
    for (int i = 0; i < 8; i++) {
        snprintf(words[i], sizeof words[i], "%llu", (unsigned long long)values[i]);
        args[i + 1] = words[i];
    }
    args[9] = NULL;
    execv("/proc/self/exe", args);
    give_up("exec");
}

static bool peer_has_finished(struct end *end)
{
    struct pollfd entry = {.fd = end->fd, .events = POLLRDHUP};
    return poll(&entry, 1, 0) > 0;
}

static void by_poll(struct end *end, bool replacing)
{
    unsigned char *data = malloc(LARGEST);
    MUST(fcntl(end->fd, F_SETFL, O_RDWR | O_NONBLOCK));
    while (!end->finished_receiving || !end->finished_sending) {
        bool moved = false;
        for (uint64_t i = roll(end) % 8; i > 0 && !end->finished_sending; i--)
            moved |= send_step(end, data);
        for (uint64_t i = roll(end) % 8; i > 0 && !end->finished_receiving; i--)
            moved |= recv_step(end, data);
        /* Once either side has sent its FIN, exec with unread bytes ends in a reset: docs/limits.md. */
        if (replacing && !end->finished_sending && !peer_has_finished(end) && roll(end) % 100 == 0)
            replace_self(end);
        if (!moved)
            await(end, (short)((end->finished_receiving ? 0 : POLLIN) | (end->finished_sending ? 0 : POLLOUT)));
    }
    free(data);
}

static int finish(struct end *end)
{
    uint64_t moves[2] = {0, 0};
    moves_counted(moves);
    printf("\ndone %llu %llu\ncarried by TCP: %lld\nmoves %llu %llu\n", (unsigned long long)end->sent,
           (unsigned long long)end->received, witness_received(end->fd), (unsigned long long)moves[0],
           (unsigned long long)moves[1]);
    return end->received == end->total ? 0 : 1;
}

/* Small messages until the connection has left TCP, as the connecting side sees it,
 * or for 20 times 60 of them. */
static void warm_up_until_moved(struct end *end)
{
    char again = 1;
    for (int i = 0; again; i++) {
        long long before = witness_received(end->fd);
        round_trips(end->fd, end->listening ? SERVER : CLIENT, 60, 64);
        if (end->listening) {
            recv_all(end->fd, &again, 1);
            continue;
        }
        again = i < 19 && witness_received(end->fd) - before >= 32;
        send_all(end->fd, &again, 1);
    }
}

int main(int argc, char **argv)
{
    struct end end = {.fd = -1};
    MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
    if (argc == 9) { /* the life after an exec */
        uint64_t values[9];
        for (int i = 1; i < 9; i++)
            values[i] = strtoull(argv[i], NULL, 10);
        end = (struct end){.listening = values[1], .seed = values[2],     .total = values[3], .fd = (int)values[4],
                           .sent = values[5],      .received = values[6], .dice = values[7],  .finished_sending = values[8]};
        by_poll(&end, true);
        return finish(&end);
    }
    if (argc < 5)
        return 2;
    end.listening = strcmp(argv[1], "listen") == 0;
    end.seed = strtoull(argv[2], NULL, 10);
    end.total = strtoull(argv[3], NULL, 10);
    end.dice = end.seed * 2 + end.listening;
    trial_side = argv[1];
    if (end.listening) {
        int listener = listen_at("127.0.0.1");
        printf("port %d\n", port_of(listener));
        fflush(stdout);
        end.fd = accept_at(listener);
        close(listener);
    } else {
        end.fd = connect_at("127.0.0.1", atoi(argv[5]));
    }
    warm_up_until_moved(&end);
    if (strcmp(argv[4], "threads") == 0)
        by_threads(&end);
    else
        by_poll(&end, strcmp(argv[4], "exec") == 0);
    return finish(&end);
}
