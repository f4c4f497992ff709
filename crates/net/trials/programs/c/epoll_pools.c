// about: worker threads of three sets serve 48 clients with EPOLLONESHOT, as database pools do: each connection by one worker at a time, also while connections come, go and move between sets
// upgraded: yes
#include "trial.h"

#define SETS 3
#define WORKERS 6
#define CLIENTS 48
#define LIVES 6
#define ROUNDS 40
#define ALL (CLIENTS * LIVES)

struct request {
    uint32_t mark, who, round;
};

struct line {
    int fd, set;
    uint32_t who, rounds, interest;
    bool busy, gone;
};

static int sets[SETS], listener, ended;
static int twice, stale, silent, wrong, refused;
static struct line lines[ALL];

static void count(int *what)
{
    __atomic_add_fetch(what, 1, __ATOMIC_SEQ_CST);
}

static void control(struct line *line, int op)
{
    struct epoll_event want = {.events = line->interest, .data.ptr = line};
    if (epoll_ctl(sets[line->set], op, line->fd, &want) != 0)
        count(&refused);
}

/* Lets go of the line and asks for its next event: from here it is another worker's. */
static void arm(struct line *line)
{
    bool moves = line->rounds % 8 == 7;
    if (moves) {
        control(line, EPOLL_CTL_DEL);
        line->set = (line->set + 1) % SETS;
    }
    __atomic_store_n(&line->busy, false, __ATOMIC_SEQ_CST);
    control(line, moves ? EPOLL_CTL_ADD : EPOLL_CTL_MOD);
}

static void end(struct line *line)
{
    __atomic_store_n(&line->gone, true, __ATOMIC_SEQ_CST);
    MUST(shutdown(line->fd, SHUT_RDWR));
    MUST(close(line->fd));
    if (__atomic_add_fetch(&ended, 1, __ATOMIC_SEQ_CST) < ALL)
        return;
    int last = (int)MUST(eventfd(1, 0)); /* stays readable: every worker sees it */
    struct epoll_event stop = {.events = EPOLLIN, .data.ptr = NULL};
    for (int i = 0; i < SETS; i++)
        MUST(epoll_ctl(sets[i], EPOLL_CTL_ADD, last, &stop));
}

static void serve(struct line *line)
{
    struct request request;
    if (__atomic_load_n(&line->gone, __ATOMIC_SEQ_CST)) {
        count(&stale);
        return;
    }
    if (__atomic_exchange_n(&line->busy, true, __ATOMIC_SEQ_CST)) {
        count(&twice);
        return;
    }
    ssize_t got = recv(line->fd, &request.mark, sizeof request.mark, MSG_DONTWAIT);
    if (got == 0) {
        end(line);
        return;
    }
    if (got != sizeof request.mark) {
        count(&silent); /* an event with nothing behind it */
    } else {
        recv_all(line->fd, &request.who, sizeof request - sizeof request.mark);
        bool right = request.mark == 0x5a16a && request.who == line->who && request.round == line->rounds;
        if (!right)
            count(&wrong);
        send_all(line->fd, &request, sizeof request);
        line->rounds++;
    }
    arm(line);
}

static void *work(void *set)
{
    struct epoll_event events[4];
    for (;;) {
        int ready = epoll_wait(*(int *)set, events, 4, LONG_MS);
        if (ready <= 0)
            give_up("no event in %d", LONG_MS);
        for (int i = 0; i < ready; i++) {
            if (events[i].data.ptr == NULL)
                return NULL;
            serve(events[i].data.ptr);
        }
    }
}

/* Greets a newcomer, hears its name, and leaves it to the workers. */
static void welcome(uint32_t who)
{
    struct line *line = &lines[who];
    line->fd = accept_at(listener);
    send_all(line->fd, &who, sizeof who);
    recv_all(line->fd, &line->who, sizeof line->who);
    line->set = (int)(who % SETS);
    line->interest = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT | (who & 1 ? EPOLLET : 0);
    control(line, EPOLL_CTL_ADD);
}

static void server(int first)
{
    listener = listen_at("127.0.0.1");
    int port = port_of(listener);
    MUST(write(trial_meet[1], &port, sizeof port));
    pthread_t threads[WORKERS];
    for (int i = 0; i < SETS; i++)
        sets[i] = (int)MUST(epoll_create1(EPOLL_CLOEXEC));
    for (int i = 0; i < WORKERS; i++)
        MUST(pthread_create(&threads[i], NULL, work, &sets[i % SETS]));
    for (uint32_t who = 0; who < ALL; who++)
        welcome(who);
    for (int i = 0; i < WORKERS; i++)
        MUST(pthread_join(threads[i], NULL));
    int full = 0;
    for (int i = 0; i < ALL; i++)
        full += lines[i].rounds == ROUNDS;
    say("served twice %d, after the end %d, for nothing %d", twice, stale, silent);
    say("wrong %d, refused %d, in full %d", wrong, refused, full);
    MUST(close(first));
}

static void live(int port)
{
    int fd = connect_at("127.0.0.1", port);
    uint32_t who;
    recv_all(fd, &who, sizeof who);
    send_all(fd, &who, sizeof who);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct request request = {0x5a16a, who, round}, back;
        send_all(fd, &request, sizeof request);
        recv_all(fd, &back, sizeof back);
        if (memcmp(&request, &back, sizeof back) != 0)
            count(&wrong);
    }
    MUST(close(fd));
}

static void *lives(void *port)
{
    for (int i = 0; i < LIVES; i++)
        live(*(int *)port);
    return NULL;
}

static void client(int first)
{
    int port;
    char byte;
    pthread_t threads[CLIENTS];
    MUST(read(trial_meet[0], &port, sizeof port));
    for (int i = 0; i < CLIENTS; i++)
        MUST(pthread_create(&threads[i], NULL, lives, &port));
    for (int i = 0; i < CLIENTS; i++)
        MUST(pthread_join(threads[i], NULL));
    say("wrong %d", wrong);
    say("end %zd", recv(first, &byte, 1, 0));
}

int main(void)
{
    return run_pair(server, client);
}
