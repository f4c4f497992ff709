// about: threads blocked in accept share a listener; shutdown of it wakes them; who was not accepted is reset
// upgraded: yes
#include "trial.h"

static int listener, served, refused;

static void *accepting(void *unused)
{
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        warm_up(fd, SERVER);
        MUST(close(fd));
        __atomic_add_fetch(&served, 1, __ATOMIC_SEQ_CST);
    }
    __atomic_add_fetch(&refused, errno == EINVAL, __ATOMIC_SEQ_CST);
    return unused;
}

static void server(int first)
{
    pthread_t threads[4];
    listener = listen_at("127.0.0.1");
    int port = port_of(listener);
    MUST(write(trial_meet[1], &port, sizeof port));
    for (int i = 0; i < 4; i++)
        MUST(pthread_create(&threads[i], NULL, accepting, NULL));
    meet();
    SAY(shutdown(listener, SHUT_RDWR));
    for (int i = 0; i < 4; i++)
        MUST(pthread_join(threads[i], NULL));
    say("served %d, woken %d", served, refused);
    MUST(close(listener));
    listener = listen_at("127.0.0.1"); /* nobody accepts here */
    port = port_of(listener);
    MUST(write(trial_meet[1], &port, sizeof port));
    meet();
    meet();
    MUST(close(listener));
    meet();
    MUST(close(first));
}

static void client(int first)
{
    int port;
    char byte;
    MUST(read(trial_meet[0], &port, sizeof port));
    for (int i = 0; i < 12; i++) {
        int fd = connect_at("127.0.0.1", port);
        warm_up(fd, CLIENT);
        say("end %zd", recv(fd, &byte, 1, 0));
        MUST(close(fd));
    }
    meet();
    MUST(read(trial_meet[0], &port, sizeof port));
    meet();
    int fd = connect_at("127.0.0.1", port);
    send_all(fd, "waiting", 7);
    meet();
    SAY(recv(fd, &byte, 1, 0));
    meet();
    say("end %zd", recv(first, &byte, 1, 0));
}

int main(void)
{
    return run_pair(server, client);
}
