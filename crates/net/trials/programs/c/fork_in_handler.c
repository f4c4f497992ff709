// about: fork in a signal handler above a blocked recv or poll, from which both processes return
// upgraded: yes
#include "trial.h"

enum { WAYS = 2 };
static int line, way;
static pid_t self, child;
static pthread_t waiter;

static void on_signal(int number)
{
    (void)number;
    child = (pid_t)MUST(fork());
}

static void *signal_it(void *unused)
{
    await_asleep(self);
    MUST(-pthread_kill(waiter, SIGUSR1));
    return unused;
}

static void run(int fd)
{
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    int closed[2], leave[2], status;
    char byte;
    pthread_t helper;
    line = fd;
    self = gettid();
    waiter = pthread_self();
    MUST(pipe2(closed, O_CLOEXEC));
    MUST(pipe2(leave, O_CLOEXEC));
    MUST(-pthread_create(&helper, NULL, signal_it, NULL));
    long rc = way == 0 ? recv(fd, &byte, 1, 0) : poll(&entry, 1, -1);
    if (child == 0) {
        int error = errno;
        close(leave[1]);
        MUST(close(fd));
        byte = rc == -1 && error == EINTR ? 'i' : '?';
        MUST(write(closed[1], &byte, 1));
        read(leave[0], &byte, 1); /* until the parent closes it */
        _exit(0);
    }
    say_rc("interrupted", rc);
    MUST(-pthread_join(helper, NULL));
    close(leave[0]);
    MUST(read(closed[0], &byte, 1));
    say("the child too: %c", byte);
    meet();
    prove(fd, CLIENT);
    MUST(close(fd));
    meet(); /* the peer has seen the end */
    close(leave[1]);
    MUST(waitpid(child, &status, 0));
    close(closed[0]);
    close(closed[1]);
}

static void server(int fd)
{
    char byte;
    int door = open_door();
    MUST(close(fd));
    for (way = 0; way < WAYS; way++) {
        fd = warm_server(door);
        meet();
        prove(fd, SERVER);
        say("end %zd", recv(fd, &byte, 1, 0));
        meet();
        MUST(close(fd));
    }
}

static void client(int fd)
{
    int port = find_door();
    MUST(close(fd));
    struct sigaction action = {.sa_handler = on_signal};
    MUST(sigaction(SIGUSR1, &action, NULL));
    for (way = 0; way < WAYS; way++)
        run(warm_client(port));
}

int main(void)
{
    return run_pair(server, client);
}
