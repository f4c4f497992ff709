// about: EADDRINUSE: beside a listener, beside an upgraded connection, after a clean close (TIME_WAIT) and after a reset, with and without SO_REUSEADDR
// upgraded: yes
#include "trial.h"

static void try(const char *what, int port, bool reuse, bool listening)
{
    int fd = (int)MUST(socket(AF_INET, SOCK_STREAM, 0)), on = 1;
    struct place place = place_of("127.0.0.1", port);
    if (reuse)
        MUST(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
    long rc = bind(fd, (struct sockaddr *)&place.addr, place.length);
    say_rc(what, rc == 0 && listening ? listen(fd, 1) : rc);
    MUST(close(fd));
}

static int listen_reusing(void)
{
    int fd = (int)MUST(socket(AF_INET, SOCK_STREAM, 0)), on = 1;
    struct place place = place_of("127.0.0.1", 0);
    MUST(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
    MUST(bind(fd, (struct sockaddr *)&place.addr, place.length));
    MUST(listen(fd, 5));
    int port = port_of(fd);
    MUST(write(trial_meet[1], &port, sizeof port));
    return fd;
}

static void server(int fd)
{
    for (int hard = 0; hard < 2; hard++) {
        int listener = listen_reusing(), port = port_of(listener);
        int other = warm_server(listener);
        try("beside the listener", port, false, true);
        try("beside the listener, reusing", port, true, true);
        MUST(close(listener));
        try("beside the connection", port, false, false);
        try("beside the connection, reusing", port, true, true);
        if (hard)
            close_hard(other);
        else
            MUST(close(other));
        meet();
        meet(); /* the client has closed, too */
        try(hard ? "after a reset" : "after the end", port, false, false);
        try(hard ? "after a reset, reusing" : "after the end, reusing", port, true, true);
    }
    round_trips(fd, SERVER, 10, 64);
}

static void client(int fd)
{
    for (int hard = 0; hard < 2; hard++) {
        int other = warm_client(find_door());
        meet();
        await_event(other, POLLRDHUP);
        MUST(close(other));
        meet();
    }
    round_trips(fd, CLIENT, 10, 64);
}

int main(void)
{
    return run_pair(server, client);
}
