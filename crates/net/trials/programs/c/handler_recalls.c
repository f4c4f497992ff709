// about: a signal handler ends the channel that the interrupted thread reads from; no byte is lost, doubled or moved
// upgraded: any, each connection leaves its channel
#include "trial.h"
#include <sys/time.h>

#define CONNECTIONS 14
#define TOTAL (12u << 20)
#define BLOCK 200000
#define PERIOD 8191

static int line;
static unsigned char stream[PERIOD + BLOCK], block[BLOCK];

/* The socket's own buffers are so small that they do not take what is unread in the ring. */
static void prepare(int option)
{
    int small = 32768;
    MUST(setsockopt(line, SOL_SOCKET, option, &small, sizeof small));
    for (size_t i = 0; i < sizeof stream; i++)
        stream[i] = pattern(0, i % PERIOD);
}

static size_t piece(size_t at)
{
    return TOTAL - at < BLOCK ? TOTAL - at : BLOCK;
}

/* O_ASYNC is for the kernel's socket alone, so what is unread in the ring comes by TCP. */
static void leave_channel(int number)
{
    (void)number;
    int saved = errno;
    MUST(fcntl(line, F_SETFL, O_RDWR | O_ASYNC));
    errno = saved;
}

/* The connections are left at different moments of the transfer. */
static void read_all(int connection)
{
    struct itimerval once = {.it_value.tv_usec = 300 + 120 * connection};
    MUST(setitimer(ITIMER_REAL, &once, NULL));
    for (size_t at = 0; at < TOTAL;) {
        ssize_t got = MUST(recv(line, block, piece(at), 0));
        if (got == 0 || memcmp(block, stream + at % PERIOD, (size_t)got) != 0) {
            errno = EBADMSG;
            give_up("connection %d: %zd bytes behind %zu", connection, got, at);
        }
        at += (size_t)got;
    }
    send_all(line, "k", 1);
}

static void server(int fd)
{
    (void)fd;
    int listener = open_door();
    struct sigaction action = {.sa_handler = leave_channel, .sa_flags = SA_RESTART};
    MUST(sigaction(SIGALRM, &action, NULL));
    for (int connection = 0; connection < CONNECTIONS; connection++) {
        line = accept_at(listener);
        prepare(SO_RCVBUF);
        round_trips(line, SERVER, 50, 64);
        read_all(connection);
        MUST(close(line));
    }
    say("%d connections", CONNECTIONS);
}

static void client(int fd)
{
    (void)fd;
    char byte;
    int port = find_door();
    for (int connection = 0; connection < CONNECTIONS; connection++) {
        line = connect_at("127.0.0.1", port);
        prepare(SO_SNDBUF);
        round_trips(line, CLIENT, 50, 64);
        for (size_t at = 0; at < TOTAL; at += piece(at))
            send_all(line, stream + at % PERIOD, piece(at));
        recv_all(line, &byte, 1);
        MUST(close(line));
    }
}

int main(void)
{
    return run_pair_at("127.0.0.1", "127.0.0.1", true, server, client);
}
