// about: stdio and exec write right behind a send, while the peer makes no call that could notice a switch to the ring
// upgraded: yes
#include "trial.h"

#define ROUNDS 30
static int listener, port;

static void server(int fd)
{
    char text[64];
    (void)fd;
    for (int i = 0; i < 2 * ROUNDS; i++) {
        int one = accept_at(listener);
        memset(text, 0, sizeof text);
        round_trips(one, SERVER, i % ROUNDS, 64); /* somewhere among them the ways part */
        meet();
        /* All is written by now, and we have not looked since. */
        recv_all(one, text, 20);
        say("%d: %s, then %zd", i, text, recv(one, text, 1, 0));
        MUST(close(one));
    }
    int last = accept_at(listener);
    warm_up(last, SERVER);
    MUST(close(last));
}

static void write_by_stdio(int fd)
{
    FILE *stream = fdopen(fd, "w");
    fputs(" then stdio", stream);
    fclose(stream);
}

static void write_by_exec(int fd)
{
    int status;
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        MUST(dup2(fd, 1));
        execl("/bin/echo", "echo", "-n", " then child", NULL);
        _exit(9);
    }
    MUST(waitpid(child, &status, 0));
    say("child %d", status);
    MUST(close(fd));
}

static void client(int fd)
{
    (void)fd;
    for (int i = 0; i < 2 * ROUNDS; i++) {
        int one = connect_at("127.0.0.1", port);
        round_trips(one, CLIENT, i % ROUNDS, 64);
        send_all(one, "by a send", 9);
        (i < ROUNDS ? write_by_exec : write_by_stdio)(one);
        meet();
    }
    /* Its number was closed inside libc, by fclose. */
    int last = connect_at("127.0.0.1", port);
    warm_up(last, CLIENT);
    MUST(close(last));
}

int main(void)
{
    listener = listen_at("127.0.0.1");
    port = port_of(listener);
    return run_pair(server, client);
}
