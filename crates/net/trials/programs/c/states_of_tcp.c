// about: the state that TCP_INFO names at each step of an end: ESTABLISHED, FIN_WAIT2, CLOSE_WAIT, LAST_ACK and CLOSE, after shutdowns and resets
// upgraded: yes
#include "trial.h"

static int state_of(int fd)
{
    struct tcp_info info;
    socklen_t length = sizeof info;
    MUST(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length));
    return info.tcpi_state;
}

static void state(const char *when, int fd)
{
    static const char *const names[] = {"?", "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2", "TIME_WAIT", "CLOSE", "CLOSE_WAIT", "LAST_ACK", "LISTEN", "CLOSING"};
    int now = state_of(fd);
    say("%s: %s", when, now < 12 ? names[now] : "?");
}

static void server(int fd)
{
    int listener = open_door(), fresh = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
    state("fresh", fresh);
    state("listening", listener);
    state("connected", fd);
    MUST(shutdown(fd, SHUT_WR));
    meet();
    await_event(fd, POLLIN);
    while (state_of(fd) == TCP_FIN_WAIT1) /* until our FIN is acknowledged */
        poll(NULL, 0, 1);
    state("shut down, answered", fd);
    meet();
    await_event(fd, POLLHUP);
    while (state_of(fd) == TCP_FIN_WAIT2) /* an end may be known a moment before TCP's own sign of it is there */
        poll(NULL, 0, 1);
    state("both ended", fd);
    int other = warm_server(listener);
    MUST(shutdown(other, SHUT_RD));
    state("reading shut down", other);
    meet();
    await_event(other, POLLERR);
    state("reset", other);
    meet();
}

static void client(int fd)
{
    char byte;
    int port = find_door();
    meet();
    await_event(fd, POLLRDHUP);
    state("the peer's end", fd);
    SAY(recv(fd, &byte, 1, 0));
    state("the peer's end, read", fd);
    send_all(fd, "answer", 6);
    meet();
    MUST(shutdown(fd, SHUT_WR));
    await_event(fd, POLLHUP);
    int other = warm_client(port);
    meet();
    close_hard(other);
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
