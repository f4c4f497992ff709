// about: a listener closed by another thread while accept waits on it: the call goes on and takes the next connection; shutdown ends it
// upgraded: yes
#include "trial.h"

static int listener, accepted;

static void accepting(void)
{
    accepted = accept(listener, NULL, NULL);
    say("accept: %s", accepted >= 0 ? "a connection" : strerrorname_np(errno));
}

static void server(int fd)
{
    struct sleeper sleeper;
    listener = open_door();
    start_sleeper(&sleeper, accepting);
    MUST(close(listener));
    meet();
    join_sleeper(&sleeper);
    warm_up(accepted, SERVER);
    MUST(close(accepted));
    meet(); /* nobody listens any more */
    meet();
    listener = listen_at("127.0.0.1");
    int twin = (int)MUST(dup(listener));
    start_sleeper(&sleeper, accepting);
    MUST(shutdown(twin, SHUT_RDWR));
    join_sleeper(&sleeper);
    SAY(accept(twin, NULL, NULL));
    char byte;
    say("end %zd", recv(fd, &byte, 1, 0));
}

static void client(int fd)
{
    int port = find_door();
    meet();
    int other = warm_client(port);
    char byte;
    say("end %zd", recv(other, &byte, 1, 0));
    MUST(close(other));
    meet();
    struct place place = place_of("127.0.0.1", port);
    other = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
    SAY(connect(other, (struct sockaddr *)&place.addr, place.length));
    meet();
    MUST(close(fd));
}

int main(void)
{
    return run_pair(server, client);
}
