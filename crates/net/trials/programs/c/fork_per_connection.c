// about: accept, fork, the child serves, the parent closes: as PostgreSQL does, several at a time
// upgraded: yes
#include "trial.h"

#define CONNECTIONS 4

static void server(int first)
{
    int listener = listen_at("127.0.0.1");
    int port = port_of(listener);
    MUST(write(trial_meet[1], &port, sizeof port));
    MUST(close(first));
    for (int i = 0; i < CONNECTIONS; i++) {
        int fd = accept_at(listener);
        pid_t child = (pid_t)MUST(fork());
        if (child == 0) {
            MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
            MUST(close(listener));
            warm_up(fd, SERVER);
            char text[8] = {0};
            recv_all(fd, text, 5);
            send_all(fd, text, 5);
            _exit(7); /* backends end without close */
        }
        MUST(close(fd));
    }
    for (int i = 0; i < CONNECTIONS; i++) {
        int status;
        MUST(waitpid(-1, &status, 0));
        say("child exit %d", WEXITSTATUS(status));
    }
}

static void *talk(void *port)
{
    int fd = connect_at("127.0.0.1", *(int *)port);
    char text[8] = {0};
    warm_up(fd, CLIENT);
    send_all(fd, "query", 5);
    recv_all(fd, text, 5);
    if (strcmp(text, "query") != 0 || recv(fd, text, 1, 0) != 0)
        give_up("wrong answer");
    MUST(close(fd));
    return NULL;
}

static void client(int first)
{
    int port;
    pthread_t threads[CONNECTIONS];
    MUST(read(trial_meet[0], &port, sizeof port));
    for (int i = 0; i < CONNECTIONS; i++)
        MUST(pthread_create(&threads[i], NULL, talk, &port));
    for (int i = 0; i < CONNECTIONS; i++)
        MUST(pthread_join(threads[i], NULL));
    char byte;
    say("all answered; the first ended with %zd", recv(first, &byte, 1, 0));
}

int main(void)
{
    return run_pair(server, client);
}
