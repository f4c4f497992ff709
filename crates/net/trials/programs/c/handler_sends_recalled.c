// about: a signal handler sends while the peer ends its channel with bytes unread; every message comes once, whole, and in its sender's order
// upgraded: any, each connection leaves its channel
#include "trial.h"
#include <sys/time.h>

#define CONNECTIONS 40
#define MESSAGES 1500

struct message {
    uint32_t from_handler, number;
    uint64_t check;
};

static int line;
static volatile uint32_t by_handler;

static void send_message(uint32_t from_handler, uint32_t number)
{
    struct message message = {from_handler, number, number * 0x9E3779B97F4A7C15u + from_handler};
    if (MUST(send(line, &message, sizeof message, 0)) != sizeof message)
        give_up("a message was cut");
}

static void on_timer(int number)
{
    (void)number;
    int saved = errno;
    send_message(1, by_handler++);
    errno = saved;
}

/* Takes messages until the one that ends them; their order within each sender. */
static void take_messages(int connection)
{
    uint32_t next[2] = {0, 0};
    for (int taken = 0;; taken++) {
        struct message message;
        recv_all(line, &message, sizeof message);
        if (message.from_handler == 2) {
            if (message.number != next[1] || next[0] != MESSAGES)
                say("connection %d: %u and %u of %u came", connection, next[0], next[1], message.number);
            return;
        }
        uint32_t sender = message.from_handler, number = message.number;
        if (sender > 1 || number != next[sender] || message.check != number * 0x9E3779B97F4A7C15u + sender)
            give_up("connection %d: %u of sender %u, not %u", connection, number, sender, next[sender]);
        next[sender]++;
        if (taken == 20 * connection) /* with whatever is unread at this moment */
            MUST(fcntl(line, F_SETFL, O_RDWR | O_ASYNC));
    }
}

static void server(int fd)
{
    (void)fd;
    int listener = open_door();
    for (int connection = 0; connection < CONNECTIONS; connection++) {
        line = accept_at(listener);
        round_trips(line, SERVER, 50, 64);
        take_messages(connection);
        send_all(line, "k", 1);
        MUST(close(line));
    }
    say("%d connections", CONNECTIONS);
}

static void client(int fd)
{
    (void)fd;
    char byte;
    int port = find_door();
    struct itimerval often = {{0, 100}, {0, 100}}, never = {0};
    struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
    MUST(sigaction(SIGALRM, &action, NULL));
    for (int connection = 0; connection < CONNECTIONS; connection++) {
        line = connect_at("127.0.0.1", port);
        round_trips(line, CLIENT, 50, 64);
        by_handler = 0;
        MUST(setitimer(ITIMER_REAL, &often, NULL));
        for (uint32_t number = 0; number < MESSAGES; number++)
            send_message(0, number);
        MUST(setitimer(ITIMER_REAL, &never, NULL));
        send_message(2, by_handler);
        recv_all(line, &byte, 1);
        MUST(close(line));
    }
}

int main(void)
{
    return run_pair_at("127.0.0.1", "127.0.0.1", true, server, client);
}
