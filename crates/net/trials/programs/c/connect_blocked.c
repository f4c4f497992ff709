// about: a blocking connect that waits: ended by SO_SNDTIMEO, by a signal, by cancellation; EALREADY then, and poll tells when it is made
// upgraded: any
#include "trial.h"

static struct place there;
static int line;

static void connecting(void)
{
    SAY(connect(line, (struct sockaddr *)&there.addr, there.length));
}

static void server(int fd)
{
    int listener = open_door();
    MUST(listen(listener, 0));
    meet();
    meet();
    int others[3];
    for (int i = 0; i < 3; i++)
        others[i] = accept_at(listener);
    for (int i = 0; i < 3; i++)
        say("end %zd", recv(others[i], &(char){0}, 1, 0));
    round_trips(fd, SERVER, 10, 64);
}

static int fresh(void)
{
    return (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
}

static void client(int fd)
{
    struct sleeper sleeper;
    struct timeval wait = {.tv_usec = SHORT_MS * 1000}, none = {0};
    there = place_of("127.0.0.1", find_door());
    meet();
    int first = fresh(), late = fresh(), interrupted = fresh();
    MUST(connect(first, (struct sockaddr *)&there.addr, there.length));
    MUST(setsockopt(late, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait));
    SAY(connect(late, (struct sockaddr *)&there.addr, there.length));
    SAY(connect(late, (struct sockaddr *)&there.addr, there.length));
    MUST(setsockopt(late, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none));
    count_signals(SIGUSR1, 0);
    line = interrupted;
    start_sleeper(&sleeper, connecting);
    MUST(-pthread_kill(sleeper.thread, SIGUSR1));
    join_sleeper(&sleeper);
    MUST(fcntl(line, F_SETFL, O_RDWR | O_NONBLOCK));
    SAY(connect(line, (struct sockaddr *)&there.addr, there.length));
    MUST(fcntl(line, F_SETFL, O_RDWR));
    line = fresh();
    start_sleeper(&sleeper, connecting);
    MUST(-pthread_cancel(sleeper.thread));
    say("cancelled %d", join_sleeper(&sleeper));
    MUST(close(line));
    meet();
    await_event(late, POLLOUT);
    await_event(interrupted, POLLOUT);
    MUST(close(first));
    MUST(close(late));
    MUST(close(interrupted));
    round_trips(fd, CLIENT, 10, 64);
}

int main(void)
{
    return run_pair(server, client);
}
