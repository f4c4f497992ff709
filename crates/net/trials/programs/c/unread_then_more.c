// about: a peer that stops reading for a while: the sender blocks, nothing is lost, both directions stay independent
// upgraded: yes
#include "trial.h"

#define PILE (3 << 20)

static void *pile_up(void *argument)
{
    unsigned char *block = malloc(PILE);
    for (size_t i = 0; i < PILE; i++)
        block[i] = pattern(9, i);
    send_all(*(int *)argument, block, PILE);
    free(block);
    return NULL;
}

static void server(int fd)
{
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, pile_up, &fd));
    for (int i = 0; i < 1000; i++) { /* the other direction lives on while ours is stuck */
        char text[4];
        recv_all(fd, text, 4);
    }
    meet();
    MUST(pthread_join(thread, NULL));
    say("sent");
    meet();
}

static void client(int fd)
{
    unsigned char *block = malloc(PILE);
    for (int i = 0; i < 1000; i++)
        send_all(fd, "side", 4);
    meet();
    recv_all(fd, block, PILE);
    int wrong = 0;
    for (size_t i = 0; i < PILE; i++)
        wrong += block[i] != pattern(9, i);
    say("wrong %d", wrong);
    free(block);
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
