// about: 0.0.0.0 and [::] with IPV6_V6ONLY on one port, each with its own connections; a dual [::] refuses the other; v4-mapped names
// upgraded: yes
#include "trial.h"

static int listening(const char *host, int port, int v6only)
{
    struct place place = place_of(host, port);
    int fd = (int)MUST(socket(place.addr.ss_family, SOCK_STREAM, 0));
    if (place.addr.ss_family == AF_INET6)
        MUST(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, sizeof v6only));
    if (bind(fd, (struct sockaddr *)&place.addr, place.length) != 0) {
        say("%s: %s", host, strerrorname_np(errno));
        MUST(close(fd));
        return -1;
    }
    MUST(listen(fd, 5));
    return fd;
}

static void name(const char *what, struct place *place)
{
    char text[64];
    if (place->addr.ss_family == AF_INET6)
        inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&place->addr)->sin6_addr, text, sizeof text);
    else
        inet_ntop(AF_INET, &((struct sockaddr_in *)&place->addr)->sin_addr, text, sizeof text);
    say("%s %s, length %u", what, text, place->length);
}

static void serve(int listener)
{
    struct place from = {.length = sizeof from.addr}, own = from, peer = from;
    int fd = (int)MUST(accept(listener, (struct sockaddr *)&from.addr, &from.length));
    MUST(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)));
    warm_up(fd, SERVER);
    MUST(getsockname(fd, (struct sockaddr *)&own.addr, &own.length));
    MUST(getpeername(fd, (struct sockaddr *)&peer.addr, &peer.length));
    name("from", &from);
    name("own", &own);
    name("peer", &peer);
    MUST(close(fd));
}

static void server(int fd)
{
    int four = listening("0.0.0.0", 0, 0), port = port_of(four);
    int dual = listening("::", port, 0), six = listening("::", port, 1);
    say("dual %d, six %d", dual >= 0, six >= 0);
    MUST(write(trial_meet[1], &port, sizeof port));
    serve(four);
    serve(six);
    MUST(close(four));
    MUST(close(six));
    dual = listening("::", 0, 0);
    port = port_of(dual);
    MUST(write(trial_meet[1], &port, sizeof port));
    serve(dual);
    serve(dual);
    MUST(close(dual));
    MUST(close(fd));
}

static void use(const char *host, int port)
{
    int fd = connect_at(host, port);
    warm_up(fd, CLIENT);
    say("end %zd", recv(fd, &(char){0}, 1, 0));
    MUST(close(fd));
}

static void client(int fd)
{
    int port = find_door();
    use("127.0.0.1", port);
    use("::1", port);
    port = find_door();
    use("127.0.0.1", port);
    use("::ffff:127.0.0.1", port); /* an IPv6 socket that speaks IPv4 */
    MUST(close(fd));
}

int main(void)
{
    return run_pair(server, client);
}
