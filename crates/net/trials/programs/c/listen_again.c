// about: a listener that listens twice, is shut down, and listens anew: connections before and after are served
// upgraded: yes
#include "trial.h"

static void serve(const char *when, int listener)
{
    int fd = warm_server(listener);
    say("%s: served", when);
    MUST(close(fd));
}

static void server(int fd)
{
    int listener = open_door(), port;
    SAY(listen(listener, 3));
    SAY(listen(listener, -1));
    serve("listened thrice", listener);
    MUST(shutdown(listener, SHUT_RDWR));
    SAY(accept(listener, NULL, NULL));
    meet(); /* refused */
    meet();
    SAY(listen(listener, 0));
    port = port_of(listener); /* perhaps another one */
    MUST(write(trial_meet[1], &port, sizeof port));
    serve("listening anew", listener);
    SAY(listen(fd, 5));
    SAY(listen(trial_meet[0], 5));
    SAY(listen(-1, 5));
    char byte;
    say("end %zd", recv(fd, &byte, 1, 0));
}

static void client(int fd)
{
    int port = find_door();
    struct place place = place_of("127.0.0.1", port);
    MUST(close(warm_client(port)));
    meet();
    int refused = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
    SAY(connect(refused, (struct sockaddr *)&place.addr, place.length));
    meet();
    MUST(close(warm_client(find_door())));
    MUST(close(fd));
}

int main(void)
{
    return run_pair(server, client);
}
