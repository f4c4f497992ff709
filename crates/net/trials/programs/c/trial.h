/* What every parity program shares: a server and a client process joined by one
 * TCP connection, a warm-up that lets the connection be upgraded, barriers, and
 * output that comes out in one order however the two run.
 *
 * Output goes through say(); each side has its own, the client's is printed
 * after the server's. Nothing that differs between two runs may be said: no
 * pid, port, time or buffer size. */
#ifndef TRIAL_H
#define TRIAL_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "witness.h"

#define SHARED static __attribute__((unused))
#define LONG_MS 20000 /* "for ever", yet below the harness's limit */
#define SHORT_MS 30   /* to see that nothing comes; the answer does not depend on it */

SHARED int trial_out = STDOUT_FILENO;
SHARED int trial_meet[2] = {-1, -1}; /* pipes to and from the other side */
SHARED const char *trial_side = "trial";

SHARED __attribute__((noreturn, format(printf, 1, 2))) void give_up(const char *format, ...)
{
    int saved = errno;
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s: ", trial_side);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, ": %s\n", strerrorname_np(saved) ? strerrorname_np(saved) : "?");
    _exit(99);
}

/* Stops the program when a step that is not under test fails. */
#define MUST(call)                                            \
    ({                                                        \
        long must_ = (long)(call);                            \
        if (must_ < 0)                                        \
            give_up("%s:%d: %s", __FILE_NAME__, __LINE__, #call); \
        must_;                                                \
    })

/* One line of output; errno stays as it was. */
SHARED __attribute__((format(printf, 1, 2))) void say(const char *format, ...)
{
    int saved = errno;
    char line[2048];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    if (length > (int)sizeof line - 2)
        length = sizeof line - 2;
    line[length++] = '\n';
    if (write(trial_out, line, (size_t)length) != length)
        _exit(98);
    errno = saved;
}

/* "WHAT = RC", with errno's name when RC is -1. */
SHARED long say_rc(const char *what, long rc)
{
    if (rc == -1)
        say("%s = -1 %s", what, strerrorname_np(errno));
    else
        say("%s = %ld", what, rc);
    return rc;
}
#define SAY(call) say_rc(#call, (errno = 0, (long)(call)))

/* ---- names ------------------------------------------------------------- */
struct place {
    struct sockaddr_storage addr;
    socklen_t length;
};

SHARED struct place place_of(const char *host, int port)
{
    struct place place;
    memset(&place, 0, sizeof place);
    struct sockaddr_in *v4 = (struct sockaddr_in *)&place.addr;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&place.addr;
    if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)port);
        place.length = sizeof *v4;
    } else if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)port);
        place.length = sizeof *v6;
    } else {
        errno = EINVAL;
        give_up("no address: %s", host);
    }
    return place;
}

SHARED int port_of(int fd)
{
    struct place place;
    place.length = sizeof place.addr;
    MUST(getsockname(fd, (struct sockaddr *)&place.addr, &place.length));
    return ntohs(place.addr.ss_family == AF_INET6
                     ? ((struct sockaddr_in6 *)&place.addr)->sin6_port
                     : ((struct sockaddr_in *)&place.addr)->sin_port);
}

SHARED int listen_at(const char *host)
{
    struct place place = place_of(host, 0);
    int fd = (int)MUST(socket(place.addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    MUST(bind(fd, (struct sockaddr *)&place.addr, place.length));
    MUST(listen(fd, 512));
    return fd;
}

SHARED int connect_at(const char *host, int port)
{
    struct place place = place_of(host, port);
    int fd = (int)MUST(socket(place.addr.ss_family, SOCK_STREAM, 0));
    MUST(connect(fd, (struct sockaddr *)&place.addr, place.length));
    int one = 1;
    MUST(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one));
    return fd;
}

SHARED int accept_at(int listener)
{
    int fd = (int)MUST(accept(listener, NULL, NULL));
    int one = 1;
    MUST(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one));
    return fd;
}

/* ---- bytes ------------------------------------------------------------- */
SHARED void send_all(int fd, const void *data, size_t length)
{
    const char *at = data;
    while (length > 0) {
        ssize_t sent = send(fd, at, length, MSG_NOSIGNAL);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
            struct pollfd entry = {.fd = fd, .events = POLLOUT};
            poll(&entry, 1, LONG_MS);
            continue;
        }
        MUST(sent);
        at += sent;
        length -= (size_t)sent;
    }
}

SHARED void recv_all(int fd, void *data, size_t length)
{
    char *at = data;
    while (length > 0) {
        ssize_t got = recv(fd, at, length, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            struct pollfd entry = {.fd = fd, .events = POLLIN};
            poll(&entry, 1, LONG_MS);
            continue;
        }
        MUST(got);
        if (got == 0) {
            errno = EPIPE;
            give_up("the connection ended early");
        }
        at += got;
        length -= (size_t)got;
    }
}

/* Receives until the other side ends; how many bytes that were. */
SHARED long long recv_to_end(int fd)
{
    static char block[65536];
    long long total = 0;
    for (ssize_t got; (got = MUST(recv(fd, block, sizeof block, 0))) > 0;)
        total += got;
    return total;
}

/* Waits until exactly `wanted` bytes can be received. */
SHARED void await_bytes(int fd, int wanted)
{
    int pending = 0;
    for (int i = 0; i < LONG_MS; i++) {
        MUST(ioctl(fd, FIONREAD, &pending));
        if (pending == wanted)
            return;
        poll(NULL, 0, 1);
    }
    errno = ETIMEDOUT;
    give_up("%d bytes pending, not %d", pending, wanted);
}

SHARED void await_event(int fd, short events)
{
    struct pollfd entry = {.fd = fd, .events = events};
    if (MUST(poll(&entry, 1, LONG_MS)) == 0) {
        errno = ETIMEDOUT;
        give_up("no event %#x", (unsigned)events);
    }
}

/* The byte at position `at` of the stream `stream`. */
SHARED unsigned char pattern(uint64_t stream, uint64_t at)
{
    uint64_t mixed = (at / 8 + 1) * 0x9E3779B97F4A7C15u ^ (stream * 0xD1B54A32D192ED03u);
    mixed ^= mixed >> 29;
    mixed *= 0xBF58476D1CE4E5B9u;
    return (unsigned char)(mixed >> (at % 8 * 8));
}

/* ---- the upgrade ------------------------------------------------------- */
enum role { SERVER, CLIENT };

/* What has just come from the other side must be its. */
SHARED void check_trip(enum role role, const char *in, size_t size, int number)
{
    if (in[0] != (role == SERVER ? 'C' : 'S') || in[size - 1] != in[0]) {
        errno = EBADMSG;
        give_up("round trip %d is corrupt", number);
    }
}

SHARED void round_trips(int fd, enum role role, int count, size_t size)
{
    char out[1024], in[1024];
    memset(out, role == SERVER ? 'S' : 'C', sizeof out);
    for (int i = 0; i < count; i++) {
        if (role == CLIENT)
            send_all(fd, out, size);
        recv_all(fd, in, size);
        if (role == SERVER)
            send_all(fd, out, size);
        check_trip(role, in, size, i);
    }
}

/* Tells the harness whether TCP carried the 16 messages of 512 bytes that have just come. */
SHARED void note_proof(const char *name, long long carried)
{
    const char *path = getenv("TRIAL_PROOF");
    if (path == NULL)
        return;
    int file = (int)MUST(open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    char line[128];
    int length = snprintf(line, sizeof line, "%s %s %lld\n", carried < 16 * 512 / 2 ? "moved" : "kernel", name, carried);
    MUST(write(file, line, (size_t)length));
    MUST(close(file));
}

/* Tells the harness whether TCP carries what this connection carries now. */
SHARED void prove(int fd, enum role role)
{
    long long before = witness_received(fd);
    char out[512], in[512];
    memset(out, role == SERVER ? 'S' : 'C', sizeof out);
    round_trips(fd, role, 15, sizeof out);
    if (role == CLIENT)
        send_all(fd, out, sizeof out);
    recv_all(fd, in, sizeof in);
    check_trip(role, in, sizeof in, 15);
    note_proof(role == SERVER ? "server" : "client", witness_received(fd) - before);
    /* Only now may the client go on, and send what would be counted. */
    if (role == SERVER)
        send_all(fd, out, sizeof out);
}

/* The same where this thread has both ends. */
SHARED void prove_alone(int one, int other)
{
    char block[512] = {0};
    long long before = witness_received(other);
    for (int i = 0; i < 16; i++) {
        send_all(one, block, sizeof block);
        recv_all(other, block, sizeof block);
        send_all(other, block, sizeof block);
        recv_all(one, block, sizeof block);
    }
    note_proof("alone", witness_received(other) - before);
}

/* Enough messages both ways for the hand-shake, then the proof. */
SHARED void warm_up(int fd, enum role role)
{
    round_trips(fd, role, 50, 64);
    prove(fd, role);
}

/* A round trip of the client's without ever waiting in a call. It polls, for a connection that no
 * call is seen to wait for is not upgraded. */
SHARED void ask_busily(int fd, size_t length)
{
    char text[512];
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    memset(text, 'C', length);
    send_all(fd, text, length);
    for (size_t had = 0; had < length;) {
        ssize_t got = recv(fd, text + had, length - had, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN))
            give_up("recv");
        if (got > 0)
            had += (size_t)got;
        else
            MUST(poll(&entry, 1, 0));
    }
}

/* The client's part of warm_up(), after which the library has had no reason to make a bell. */
SHARED void warm_up_busily(int fd)
{
    for (int trip = 0; trip < 50; trip++)
        ask_busily(fd, 64);
    for (int trip = 0; trip < 16; trip++)
        ask_busily(fd, 512);
}

/* What the library's status page says of this process: connections moved to channels, and back
 * (crates/net/status/src/layout.rs). False where there is none. */
SHARED bool moves_counted(uint64_t moves[2])
{
    bool found = false;
    struct dirent *entry;
    DIR *folder = opendir("/proc/self/fd");
    while (folder != NULL && !found && (entry = readdir(folder)) != NULL) {
        char target[64] = {0};
        uint32_t pid = 0;
        if (readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1) < 0 ||
            strcmp(target, "/memfd:saiga-status (deleted)") != 0)
            continue;
        int page = openat(dirfd(folder), entry->d_name, O_RDONLY | O_CLOEXEC);
        found = page >= 0 && pread(page, &pid, sizeof pid, 20) == sizeof pid && pid == (uint32_t)getpid() &&
                pread(page, moves, 2 * sizeof *moves, 304) == 2 * sizeof *moves;
        if (page >= 0)
            close(page);
    }
    if (folder != NULL)
        closedir(folder);
    return found;
}

/* Tells the harness how often the connections of this process changed their way. */
SHARED void report_moves(void)
{
    uint64_t moves[2];
    char line[64];
    const char *path = getenv("TRIAL_PROOF");
    if (path == NULL || !moves_counted(moves))
        return;
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0)
        return; /* out of descriptors, or of rights: one of those programs */
    int length = snprintf(line, sizeof line, "moves %llu %llu\n", (unsigned long long)moves[0],
                          (unsigned long long)moves[1]);
    write(file, line, (size_t)length);
    close(file);
}

/* ---- two processes ----------------------------------------------------- */
/* Both sides come here, then both go on. */
SHARED void meet(void)
{
    char byte = 'm';
    MUST(write(trial_meet[1], &byte, 1));
    ssize_t got;
    while ((got = read(trial_meet[0], &byte, 1)) < 0 && errno == EINTR)
        ;
    if (got != 1)
        give_up("the other side has left");
}

/* Prints what the side `out` (a file) said, and how it ended. */
SHARED void relay(int out, const char *name, int status)
{
    char buffer[65536];
    ssize_t got;
    say("[%s]", name);
    for (off_t at = 0; (got = pread(out, buffer, sizeof buffer, at)) > 0; at += got)
        MUST(write(trial_out, buffer, (size_t)got));
    if (WIFSIGNALED(status))
        say("[%s: signal %d]", name, WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        say("[%s: exit %d]", name, WEXITSTATUS(status));
}

typedef void side(int fd);

/* A child process that runs `body`, with its own output, barred from outliving us. */
SHARED pid_t start_side(const char *name, int out, int meet_in, int meet_out)
{
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
        trial_side = name;
        trial_out = out;
        trial_meet[0] = meet_in;
        trial_meet[1] = meet_out;
    }
    return child;
}

/* Two children joined by a connection to `host`: the server's and the client's
 * body run after a warm-up (unless `cold`). Returns 0 unless one gave up. */
SHARED int run_pair_at(const char *bind_to, const char *host, bool cold, side *server, side *client)
{
    int to_server[2], to_client[2], status[2];
    /* Files of the harness's folder: it shows them when the program hangs. */
    int out[2] = {(int)MUST(open("server.out", O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600)),
                  (int)MUST(open("client.out", O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600))};
    MUST(pipe2(to_server, O_CLOEXEC));
    MUST(pipe2(to_client, O_CLOEXEC));
    int listener = listen_at(bind_to);
    int port = port_of(listener);
    pid_t serving = start_side("server", out[0], to_server[0], to_client[1]);
    if (serving == 0) {
        close(to_server[1]);
        close(to_client[0]);
        int fd = accept_at(listener);
        close(listener);
        if (!cold)
            warm_up(fd, SERVER);
        server(fd);
        report_moves();
        exit(0);
    }
    pid_t connecting = start_side("client", out[1], to_client[0], to_server[1]);
    if (connecting == 0) {
        close(to_client[1]);
        close(to_server[0]);
        close(listener);
        int fd = connect_at(host, port);
        if (!cold)
            warm_up(fd, CLIENT);
        client(fd);
        report_moves();
        exit(0);
    }
    close(listener);
    for (int i = 0; i < 2; i++) {
        close(to_server[i]);
        close(to_client[i]);
    }
    MUST(waitpid(serving, &status[0], 0));
    MUST(waitpid(connecting, &status[1], 0));
    relay(out[0], "server", status[0]);
    relay(out[1], "client", status[1]);
    close(out[0]);
    close(out[1]);
    for (int i = 0; i < 2; i++)
        if (WIFEXITED(status[i]) && WEXITSTATUS(status[i]) >= 97)
            return 97; /* give_up() */
    return 0;
}

SHARED int run_pair(side *server, side *client)
{
    return run_pair_at("127.0.0.1", "127.0.0.1", false, server, client);
}

/* ---- further connections of the two sides ------------------------------- */
/* A listener of the server's, whose port the client gets by find_door(). */
SHARED int open_door(void)
{
    int listener = listen_at("127.0.0.1"), port = port_of(listener);
    MUST(write(trial_meet[1], &port, sizeof port));
    return listener;
}

SHARED int find_door(void)
{
    int port = -1;
    if (read(trial_meet[0], &port, sizeof port) != sizeof port)
        give_up("no port from the other side");
    return port;
}

SHARED int warm_server(int listener)
{
    int fd = accept_at(listener);
    warm_up(fd, SERVER);
    return fd;
}

SHARED int warm_client(int port)
{
    int fd = connect_at("127.0.0.1", port);
    warm_up(fd, CLIENT);
    return fd;
}

/* close() that resets, whatever is unread. */
SHARED void close_hard(int fd)
{
    struct linger none = {.l_onoff = 1};
    MUST(setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none));
    MUST(close(fd));
}

/* ---- signals ----------------------------------------------------------- */
SHARED volatile sig_atomic_t trial_signals;

SHARED void count_signal(int number)
{
    (void)number;
    trial_signals++;
}

/* From here on, `number` only counts. */
SHARED void count_signals(int number, int flags)
{
    struct sigaction action = {.sa_handler = count_signal, .sa_flags = flags};
    MUST(sigaction(number, &action, NULL));
    trial_signals = 0;
}

/* ---- threads ----------------------------------------------------------- */
/* Waits until the thread `tid`, of this process or another, sleeps in the kernel. */
SHARED void await_asleep(pid_t tid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", tid, tid);
    for (int i = 0; i < LONG_MS; i++) {
        int file = (int)MUST(open(path, O_RDONLY | O_CLOEXEC));
        ssize_t got = MUST(read(file, text, sizeof text - 1));
        MUST(close(file));
        text[got] = 0;
        const char *state = strrchr(text, ')');
        if (state != NULL && state[2] == 'S')
            return;
        poll(NULL, 0, 1);
    }
    errno = ETIMEDOUT;
    give_up("a thread does not go to sleep");
}

struct sleeper {
    pthread_t thread;
    void (*body)(void);
    volatile pid_t tid;
};

SHARED void *run_sleeper(void *argument)
{
    struct sleeper *sleeper = argument;
    sleeper->tid = gettid();
    sleeper->body();
    return NULL;
}

/* Runs `body` in a thread; returns once that sleeps. */
SHARED void start_sleeper(struct sleeper *sleeper, void (*body)(void))
{
    *sleeper = (struct sleeper){.body = body};
    MUST(-pthread_create(&sleeper->thread, NULL, run_sleeper, sleeper));
    while (sleeper->tid == 0)
        poll(NULL, 0, 1);
    await_asleep(sleeper->tid);
}

/* Waits for its end; true when it was cancelled. */
SHARED bool join_sleeper(struct sleeper *sleeper)
{
    void *result;
    MUST(-pthread_join(sleeper->thread, &result));
    return result == PTHREAD_CANCELED;
}

/* ---- tools ------------------------------------------------------------- */
SHARED uint64_t now_ns(void)
{
    struct timespec now;
    MUST(clock_gettime(CLOCK_MONOTONIC, &now));
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Calls `order` with the number in each line of stdin, by `format`. Returns 2 at another line. */
SHARED int obey(const char *format, void (*order)(long number))
{
    char line[64];
    long number;
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (sscanf(line, format, &number) != 1)
            return 2;
        order(number);
        fflush(stdout);
    }
    return 0;
}
#endif
