// about: coroutines by swapcontext on small stacks of their own, one connection each, which yield on EAGAIN to a poll loop
// upgraded: yes
#include "trial.h"
#include <ucontext.h>

enum { COROUTINES = 6, STACK = 32768, TURNS = 150 };

static ucontext_t loop, contexts[COROUTINES];
static char stacks[COROUTINES][STACK];
static int fds[COROUTINES], turns[COROUTINES], current;
static short wanted[COROUTINES];

static void yield_for(short events)
{
    wanted[current] = events;
    swapcontext(&contexts[current], &loop);
}

static void run(void)
{
    int self = current;
    for (int i = 0; i < TURNS; i++) {
        char text[64], back[64];
        memset(text, i + self, sizeof text);
        while (send(fds[self], text, sizeof text, MSG_NOSIGNAL) != sizeof text)
            yield_for(POLLOUT);
        for (size_t at = 0; at < sizeof back;) {
            ssize_t got = recv(fds[self], back + at, sizeof back - at, 0);
            if (got < 0 && errno == EAGAIN)
                yield_for(POLLIN);
            else
                at += (size_t)MUST(got);
        }
        turns[self] += memcmp(text, back, sizeof text) == 0;
    }
    wanted[self] = 0;
    swapcontext(&contexts[self], &loop);
}

static void server(int fd)
{
    int listener = open_door(), open = COROUTINES;
    struct pollfd entries[COROUTINES];
    for (int i = 0; i < COROUTINES; i++)
        entries[i] = (struct pollfd){.fd = warm_server(listener), .events = POLLIN};
    while (open > 0) {
        MUST(poll(entries, COROUTINES, LONG_MS));
        for (int i = 0; i < COROUTINES; i++) {
            char text[64];
            if ((entries[i].revents & POLLIN) == 0)
                continue;
            ssize_t got = MUST(recv(entries[i].fd, text, sizeof text, 0));
            send_all(entries[i].fd, text, (size_t)got);
            if (got == 0) {
                MUST(close(entries[i].fd));
                entries[i].fd = -1;
                open--;
            }
        }
    }
    round_trips(fd, SERVER, 20, 64);
}

static void client(int fd)
{
    int port = find_door();
    struct pollfd entries[COROUTINES];
    for (int i = 0; i < COROUTINES; i++) {
        fds[i] = warm_client(port);
        MUST(fcntl(fds[i], F_SETFL, O_RDWR | O_NONBLOCK));
        MUST(getcontext(&contexts[i]));
        contexts[i].uc_stack.ss_sp = stacks[i];
        contexts[i].uc_stack.ss_size = STACK;
        makecontext(&contexts[i], run, 0);
        current = i;
        swapcontext(&loop, &contexts[i]);
    }
    for (;;) {
        int left = 0;
        for (int i = 0; i < COROUTINES; i++) {
            entries[i] = (struct pollfd){.fd = wanted[i] != 0 ? fds[i] : -1, .events = wanted[i]};
            left += wanted[i] != 0;
        }
        if (left == 0)
            break;
        MUST(poll(entries, COROUTINES, LONG_MS));
        for (current = 0; current < COROUTINES; current++)
            if (entries[current].revents != 0)
                swapcontext(&loop, &contexts[current]);
    }
    for (int i = 0; i < COROUTINES; i++) {
        say("coroutine %d: %d", i, turns[i]);
        MUST(close(fds[i]));
    }
    round_trips(fd, CLIENT, 20, 64);
}

int main(void)
{
    return run_pair(server, client);
}
