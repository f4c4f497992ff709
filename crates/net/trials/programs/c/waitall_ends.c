// about: MSG_WAITALL that ends early: the end of the stream, a signal, a timeout, shutdown by another thread
// upgraded: yes
#include "trial.h"
#include <sys/time.h>

static int line;
static volatile pid_t sleeper;

static void note(int number)
{
    (void)number;
}

static void *reading(void *unused)
{
    char text[64];
    sleeper = gettid();
    SAY(recv(line, text, 64, MSG_WAITALL));
    return unused;
}

static void during(void (*act)(pthread_t))
{
    pthread_t thread;
    sleeper = 0;
    MUST(pthread_create(&thread, NULL, reading, NULL));
    meet();
    meet(); /* three bytes are sent */
    while (sleeper == 0)
        poll(NULL, 0, 1);
    for (int pending = 1; pending > 0; poll(NULL, 0, 1))
        MUST(ioctl(line, FIONREAD, &pending));
    await_asleep(sleeper);
    act(thread);
    MUST(pthread_join(thread, NULL));
}

static void interrupt(pthread_t thread)
{
    MUST(-pthread_kill(thread, SIGUSR1));
}

static void shut(pthread_t thread)
{
    (void)thread;
    MUST(shutdown(line, SHUT_RD));
}

static void nothing(pthread_t thread)
{
    (void)thread;
}

static void server(int fd)
{
    for (int i = 0; i < 3; i++) {
        meet();
        send_all(fd, "abc", 3);
        meet();
    }
    meet();
    send_all(fd, "last", 4);
    MUST(shutdown(fd, SHUT_WR));
    meet();
}

static void client(int fd)
{
    struct sigaction action = {.sa_handler = note};
    struct timeval wait = {.tv_usec = 50000}, never = {0};
    char text[64];
    MUST(sigaction(SIGUSR1, &action, NULL));
    line = fd;
    during(interrupt);
    MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait));
    during(nothing);
    MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &never, sizeof never));
    during(shut);
    meet();
    await_event(fd, POLLHUP | POLLRDHUP);
    meet();
    int total = 0;
    for (ssize_t got; (got = recv(fd, text, 64, MSG_WAITALL)) > 0;)
        total += (int)got;
    say("what came behind it: %d", total <= 4);
}

int main(void)
{
    return run_pair(server, client);
}
