// about: a connection handed from thread to thread, and one thread sending while another receives
// upgraded: yes
#include "trial.h"

#define TURNS 2000

static int line;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void *ask(void *unused)
{
    char text[4];
    for (int i = 0; i < TURNS / 4; i++) {
        pthread_mutex_lock(&turn);
        send_all(line, "ask!", 4);
        recv_all(line, text, 4);
        pthread_mutex_unlock(&turn);
    }
    return unused;
}

static void *only_send(void *unused)
{
    for (uint32_t i = 0; i < TURNS; i++)
        send_all(line, &i, 4);
    return unused;
}

static void server(int fd)
{
    char text[4];
    for (int i = 0; i < TURNS; i++) {
        recv_all(fd, text, 4);
        send_all(fd, text, 4);
    }
    for (int i = 0; i < TURNS; i++) {
        recv_all(fd, text, 4);
        send_all(fd, text, 4);
    }
    say("end %zd", recv(fd, text, 4, 0));
}

static void client(int fd)
{
    pthread_t threads[4], sender;
    line = fd;
    for (int i = 0; i < 4; i++)
        MUST(pthread_create(&threads[i], NULL, ask, NULL));
    for (int i = 0; i < 4; i++)
        MUST(pthread_join(threads[i], NULL));
    MUST(pthread_create(&sender, NULL, only_send, NULL));
    uint32_t value, wrong = 0;
    for (uint32_t i = 0; i < TURNS; i++) {
        recv_all(fd, &value, 4);
        wrong += value != i;
    }
    MUST(pthread_join(sender, NULL));
    say("wrong %u", wrong);
    MUST(close(fd));
}

int main(void)
{
    return run_pair(server, client);
}
