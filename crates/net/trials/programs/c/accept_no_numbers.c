// about: accept when no number is free: EMFILE, the connection stays in the queue with its data, and is accepted once one is free
// upgraded: yes
#include "trial.h"
#include <sys/resource.h>

static void server(int fd)
{
    int listener = open_door();
    struct rlimit limit, none;
    struct pollfd entry = {.fd = listener, .events = POLLIN};
    char text[8] = {0};
    meet(); /* a connection is in the queue */
    await_event(listener, POLLIN);
    MUST(getrlimit(RLIMIT_NOFILE, &limit));
    none = limit;
    none.rlim_cur = 3;
    MUST(setrlimit(RLIMIT_NOFILE, &none));
    SAY(accept(listener, NULL, NULL));
    SAY(accept4(listener, NULL, NULL, SOCK_NONBLOCK));
    SAY(dup(fd));
    SAY(socket(AF_INET, SOCK_STREAM, 0));
    SAY(poll(&entry, 1, 0));
    say("events %#x", (unsigned)entry.revents);
    MUST(setrlimit(RLIMIT_NOFILE, &limit));
    int other = accept_at(listener);
    recv_all(other, text, 5);
    say("%s", text);
    warm_up(other, SERVER);
    round_trips(fd, SERVER, 20, 64);
}

static void client(int fd)
{
    int other = connect_at("127.0.0.1", find_door());
    send_all(other, "early", 5);
    meet();
    warm_up(other, CLIENT);
    round_trips(fd, CLIENT, 20, 64);
}

int main(void)
{
    return run_pair(server, client);
}
