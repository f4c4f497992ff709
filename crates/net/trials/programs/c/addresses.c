// about: 127.0.0.1, 127.0.0.2, ::1, v4-mapped on a dual-stack listener, and the host's own address upgrade
// upgraded: yes
#include "trial.h"
#include <ifaddrs.h>

static void server(int fd)
{
    char text[8] = {0};
    recv_all(fd, text, 5);
    say("heard %s", text);
    MUST(shutdown(fd, SHUT_WR));
}

static void client(int fd)
{
    char text[8];
    struct place there = {.length = sizeof there.addr};
    MUST(getpeername(fd, (struct sockaddr *)&there.addr, &there.length));
    say("family %d", there.addr.ss_family);
    send_all(fd, "hello", 5);
    say("end %zd", recv(fd, text, 8, 0));
}

int main(void)
{
    char own[INET6_ADDRSTRLEN] = "127.0.0.3"; /* a host without an address of its own */
    struct ifaddrs *all;
    MUST(getifaddrs(&all));
    for (struct ifaddrs *one = all; one != NULL; one = one->ifa_next)
        if (one->ifa_addr != NULL && one->ifa_addr->sa_family == AF_INET && strcmp(one->ifa_name, "lo") != 0)
            inet_ntop(AF_INET, &((struct sockaddr_in *)one->ifa_addr)->sin_addr, own, sizeof own);
    freeifaddrs(all);
    const char *const pairs[][2] = {{"127.0.0.1", "127.0.0.1"}, {"0.0.0.0", "127.0.0.2"}, {"127.0.0.2", "127.0.0.2"},
                                    {"::1", "::1"},             {"::", "::1"},            {"::", "127.0.0.1"},
                                    {"::", "::ffff:127.0.0.1"}, {"0.0.0.0", own},         {own, own}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        say("case %zu", i);
        if (run_pair_at(pairs[i][0], pairs[i][1], false, server, client) != 0)
            return 97;
    }
    return 0;
}
