// about: socket calls in constructors, exit handlers, thread-local destructors and destructors
// upgraded: yes
#include "trial.h"

static int early[2] = {-1, -1}, late = -1;

/* A connection made before main, with both ends in this process. */
static void __attribute__((constructor(101))) before(void)
{
    int listener = listen_at("127.0.0.1");
    early[0] = connect_at("127.0.0.1", port_of(listener));
    early[1] = accept_at(listener);
    close(listener);
    send_all(early[0], "constructed", 11);
}

static void at_exit(void)
{
    char text[16] = {0};
    send_all(late, "x", 1);
    recv_all(late, text, 1);
    say("exit handler %s", text);
}

static void __attribute__((destructor(101))) after(void)
{
    if (late < 0)
        return;
    char text[16] = {0};
    send_all(late, "d", 1);
    recv_all(late, text, 1);
    say("destructor %s", text);
    close(late);
}

static void in_thread_end(void *unused)
{
    (void)unused;
    char text[16] = {0};
    send_all(late, "t", 1);
    recv_all(late, text, 1);
    say("thread end %s", text);
}

static pthread_key_t key;
static void *thread(void *unused)
{
    pthread_setspecific(key, &key);
    return unused;
}

static void server(int fd)
{
    char byte;
    while (recv(fd, &byte, 1, 0) == 1)
        send_all(fd, &byte, 1);
    say("end");
}

static void client(int fd)
{
    pthread_t one;
    late = fd;
    MUST(pthread_key_create(&key, in_thread_end));
    MUST(pthread_create(&one, NULL, thread, NULL));
    MUST(pthread_join(one, NULL));
    MUST(atexit(at_exit));
    exit(0);
}

int main(void)
{
    char text[16] = {0};
    recv_all(early[1], text, 11);
    say("%s", text);
    for (int i = 0; i < 100; i++) {
        send_all(early[1], "back", 4);
        recv_all(early[0], text, 4);
    }
    prove_alone(early[0], early[1]);
    close(early[0]);
    say("end %zd", recv(early[1], text, 1, 0));
    return run_pair(server, client);
}
