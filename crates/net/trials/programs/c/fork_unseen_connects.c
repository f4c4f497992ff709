// about: a child made by a raw system call connects to the peer of its parent's connection
// upgraded: yes
#include "trial.h"

/* A connection from the higher address, so that this end has the segments. */
static int connect_from_above(int port)
{
    struct place own = place_of("127.0.0.2", 0), other = place_of("127.0.0.1", port);
    int fd = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
    MUST(bind(fd, (struct sockaddr *)&own.addr, own.length));
    MUST(connect(fd, (struct sockaddr *)&other.addr, other.length));
    return fd;
}

static void *serve_one(void *argument)
{
    int fd = (int)(intptr_t)argument;
    char block[64];
    while (recv(fd, block, sizeof block, 0) > 0)
        send_all(fd, block, sizeof block);
    MUST(close(fd));
    return NULL;
}

static void serve(int listener)
{
    pthread_t thread;
    for (;;)
        MUST(-pthread_create(&thread, NULL, serve_one, (void *)(intptr_t)accept_at(listener)));
}

/* What echoes give is as it was sent. */
static void talk(int fd, const char *whose)
{
    char out[64], in[64];
    int wrong = 0;
    for (int i = 0; i < 100; i++) {
        memset(out, 'a' + i % 26, sizeof out);
        send_all(fd, out, sizeof out);
        recv_all(fd, in, sizeof in);
        wrong += memcmp(out, in, sizeof out) != 0;
    }
    say("%s: %d wrong", whose, wrong);
}

int main(void)
{
    int status, go[2], listener = listen_at("127.0.0.1"), port = port_of(listener);
    char byte;
    pid_t server = (pid_t)MUST(fork());
    if (server == 0)
        serve(listener);
    MUST(pipe(go));
    int before = connect_from_above(port);
    talk(before, "before");
    pid_t child = (pid_t)MUST(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    if (child == 0) {
        MUST(read(go[0], &byte, 1));
        talk(connect_from_above(port), "child");
        _exit(5);
    }
    int behind = connect_from_above(port);
    talk(behind, "behind");
    MUST(write(go[1], "g", 1));
    MUST(waitpid(child, &status, 0));
    say("child %#x", status);
    talk(behind, "behind");
    talk(before, "before");
    long long carried = witness_received(behind);
    talk(behind, "behind");
    note_proof("behind", witness_received(behind) - carried);
    MUST(kill(server, SIGKILL));
    return 0;
}
