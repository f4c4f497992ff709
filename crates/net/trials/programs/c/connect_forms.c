// about: connect with wrong families and lengths, to port 0, to 0.0.0.0, twice, on a listener, on a bound and on a foreign socket
// upgraded: yes
// flags: -Wno-nonnull
#include "trial.h"

static void server(int fd)
{
    int listener = open_door();
    int other = warm_server(listener);
    char byte;
    say("end %zd", recv(other, &byte, 1, 0));
    round_trips(fd, SERVER, 10, 64);
}

static int stream(int family)
{
    return (int)MUST(socket(family, SOCK_STREAM, 0));
}

static void client(int fd)
{
    int port = find_door();
    struct place good = place_of("127.0.0.1", port), nowhere = place_of("127.0.0.1", 0), v6 = place_of("::1", port);
    struct place any = place_of("0.0.0.0", port);
    struct sockaddr *to = (struct sockaddr *)&good.addr;
    int one = stream(AF_INET), six = stream(AF_INET6), unixes = stream(AF_UNIX);
    SAY(connect(one, to, 0));
    SAY(connect(one, to, 7));
    SAY(connect(one, NULL, good.length));
    SAY(connect(one, to, 500));
    SAY(connect(one, (struct sockaddr *)&v6.addr, v6.length));
    SAY(connect(six, to, good.length));
    SAY(connect(unixes, to, good.length));
    SAY(connect(trial_meet[0], to, good.length));
    SAY(connect(-1, to, good.length));
    SAY(connect(one, (struct sockaddr *)&nowhere.addr, nowhere.length));
    int listener = listen_at("127.0.0.1");
    SAY(connect(listener, to, good.length));
    struct place own = place_of("127.0.0.5", 0);
    SAY(bind(one, (struct sockaddr *)&own.addr, own.length));
    SAY(bind(one, (struct sockaddr *)&own.addr, own.length));
    SAY(connect(one, (struct sockaddr *)&any.addr, any.length)); /* this host */
    SAY(connect(one, to, good.length));
    own.length = sizeof own.addr;
    MUST(getpeername(one, (struct sockaddr *)&own.addr, &own.length));
    say("peer %s", inet_ntoa(((struct sockaddr_in *)&own.addr)->sin_addr));
    own.length = sizeof own.addr;
    MUST(getsockname(one, (struct sockaddr *)&own.addr, &own.length));
    say("own %s", inet_ntoa(((struct sockaddr_in *)&own.addr)->sin_addr));
    MUST(setsockopt(one, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)));
    warm_up(one, CLIENT);
    SAY(connect(one, to, good.length));
    SAY(connect(one, to, 3));
    MUST(close(one));
    round_trips(fd, CLIENT, 10, 64);
}

int main(void)
{
    return run_pair(server, client);
}
