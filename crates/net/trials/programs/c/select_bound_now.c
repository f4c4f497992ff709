// about: select and pselect over many connections, one of which another thread has upgraded at that moment, report no signal where there was none
// upgraded: any, connections are upgraded while a thread looks at them
// limit: 60
#include "trial.h"

#define IDLE 60    /* beside the busy one: fewer than the library pins one by one */
#define ROUNDS 150 /* one of about five meets the moment */

static int idle[2 * IDLE], busy, highest;
static volatile bool over;
static volatile int interrupted, looks;

static void *look(void *way)
{
    while (!over) {
        fd_set in;
        struct timeval none = {0};
        struct timespec nothing = {0};
        FD_ZERO(&in);
        for (int i = 0; i < IDLE; i++)
            FD_SET(idle[i], &in);
        FD_SET(busy, &in);
        int rc = way ? pselect(highest + 1, &in, NULL, NULL, &nothing, NULL)
                     : select(highest + 1, &in, NULL, NULL, &none);
        interrupted += rc < 0;
        looks++;
    }
    return NULL;
}

static void server(int fd)
{
    int listener = open_door();
    for (int i = 0; i < IDLE; i++)
        idle[i] = accept_at(listener);
    for (int i = 0; i < ROUNDS; i++) {
        int one = accept_at(listener);
        round_trips(one, SERVER, 60, 64);
        MUST(close(one));
    }
    recv_all(fd, (char[1]){0}, 1);
}

static void client(int fd)
{
    int port = find_door();
    for (int i = 0; i < IDLE; i++)
        idle[i] = connect_at("127.0.0.1", port);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_t looker;
        highest = busy = connect_at("127.0.0.1", port);
        over = false;
        looks = 0;
        MUST(-pthread_create(&looker, NULL, look, i % 2 ? "pselect" : NULL));
        while (looks == 0)
            sched_yield();
        round_trips(busy, CLIENT, 60, 64);
        over = true;
        MUST(-pthread_join(looker, NULL));
        MUST(close(busy));
    }
    say("interrupted %d", interrupted);
    send_all(fd, "!", 1);
}

int main(void)
{
    return run_pair(server, client);
}
