// about: two processes with a SO_REUSEPORT listener each share a port: every connection is served by one of them and upgraded
// upgraded: yes
#include "trial.h"

#define COUNT 16

static int listen_shared(int port)
{
    struct place place = place_of("127.0.0.1", port);
    int one = 1, fd = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
    MUST(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one));
    MUST(bind(fd, (struct sockaddr *)&place.addr, place.length));
    MUST(listen(fd, COUNT));
    return fd;
}

/* Serves what the kernel gives to this listener until it is killed. */
static void serve(int listener)
{
    MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
    for (;;)
        MUST(close(warm_server(listener)));
}

static void server(int fd)
{
    int first = listen_shared(0), port = port_of(first), second = listen_shared(port);
    pid_t workers[2];
    for (int i = 0; i < 2; i++) {
        workers[i] = (pid_t)MUST(fork());
        if (workers[i] == 0) {
            close(i == 0 ? second : first);
            serve(i == 0 ? first : second);
        }
    }
    close(first);
    close(second);
    MUST(write(trial_meet[1], &port, sizeof port));
    char byte;
    say("all served: %zd", recv(fd, &byte, 1, 0));
    for (int i = 0; i < 2; i++) {
        MUST(kill(workers[i], SIGKILL));
        MUST(waitpid(workers[i], NULL, 0));
    }
}

static void client(int fd)
{
    int port = find_door();
    for (int i = 0; i < COUNT; i++)
        MUST(close(warm_client(port)));
    MUST(send(fd, ".", 1, 0));
}

int main(void)
{
    return run_pair(server, client);
}
