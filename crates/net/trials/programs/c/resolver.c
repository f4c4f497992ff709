// about: getaddrinfo and getnameinfo, passive and active, by name and by number, and a connection made from what they say
// upgraded: yes
#include "trial.h"

static struct addrinfo *look_up(const char *host, const char *service, int flags)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = flags}, *found = NULL;
    int rc = getaddrinfo(host, service, &hints, &found);
    say("%s %s: %s", host == NULL ? "-" : host, flags & AI_PASSIVE ? "passive" : "active", rc == 0 ? "found" : gai_strerror(rc));
    return rc == 0 ? found : NULL;
}

static void server(int fd)
{
    struct addrinfo *own = look_up(NULL, "0", AI_PASSIVE | AI_NUMERICSERV);
    int listener = (int)MUST(socket(own->ai_family, own->ai_socktype, own->ai_protocol));
    MUST(bind(listener, own->ai_addr, own->ai_addrlen));
    MUST(listen(listener, 5));
    freeaddrinfo(own);
    int port = port_of(listener);
    MUST(write(trial_meet[1], &port, sizeof port));
    struct place from = {.length = sizeof from.addr};
    int other = (int)MUST(accept(listener, (struct sockaddr *)&from.addr, &from.length));
    char host[64], service[32];
    int rc = getnameinfo((struct sockaddr *)&from.addr, from.length, host, sizeof host, service, sizeof service, NI_NUMERICHOST | NI_NUMERICSERV);
    say("%d %s", rc, host);
    MUST(setsockopt(other, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)));
    warm_up(other, SERVER);
    round_trips(fd, SERVER, 20, 64);
}

static void client(int fd)
{
    char service[16];
    snprintf(service, sizeof service, "%d", find_door());
    look_up("no.such.host.invalid", service, AI_NUMERICHOST);
    look_up("127.0.0.1", "no-such-service", 0);
    struct addrinfo *there = look_up("localhost", service, 0);
    int other = (int)MUST(socket(there->ai_family, there->ai_socktype, there->ai_protocol));
    MUST(connect(other, there->ai_addr, there->ai_addrlen));
    freeaddrinfo(there);
    MUST(setsockopt(other, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)));
    warm_up(other, CLIENT);
    round_trips(fd, CLIENT, 20, 64);
}

int main(void)
{
    return run_pair(server, client);
}
