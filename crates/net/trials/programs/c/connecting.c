// about: non-blocking connect, refusal, SO_ERROR, EISCONN, accept4 flags, EAGAIN of accept, self-made names
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    int listener = listen_at("127.0.0.1"), port = port_of(listener);
    MUST(fcntl(listener, F_SETFL, O_RDWR | O_NONBLOCK));
    SAY(accept(listener, NULL, NULL));
    SAY(accept4(listener, NULL, NULL, 0x1234));
    struct pollfd entry = {.fd = listener, .events = POLLIN};
    SAY(poll(&entry, 1, 0));
    MUST(write(trial_meet[1], &port, sizeof port));
    await_event(listener, POLLIN);
    struct place from = {.length = sizeof from.addr};
    int other = (int)MUST(accept4(listener, (struct sockaddr *)&from.addr, &from.length, SOCK_NONBLOCK | SOCK_CLOEXEC));
    say("from family %d length %u", from.addr.ss_family, from.length);
    say("flags %d %d", (fcntl(other, F_GETFL) & O_NONBLOCK) != 0, fcntl(other, F_GETFD));
    char byte;
    round_trips(other, SERVER, 60, 32);
    SAY(recv(other, &byte, 1, 0));
    meet();
    MUST(close(listener));
    meet();
    MUST(close(fd));
}

static void client(int fd)
{
    int port, error = -1;
    socklen_t length = sizeof error;
    MUST(read(trial_meet[0], &port, sizeof port));
    struct place place = place_of("127.0.0.1", port);
    int other = (int)MUST(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    say_rc("recv before", recv(other, &error, 1, 0));
    say_rc("send before", send(other, &error, 1, MSG_NOSIGNAL));
    int rc = connect(other, (struct sockaddr *)&place.addr, place.length);
    say("connect: %d", rc == 0 || errno == EINPROGRESS);
    await_event(other, POLLOUT);
    SAY(getsockopt(other, SOL_SOCKET, SO_ERROR, &error, &length));
    say("error %d", error);
    (void)!connect(other, (struct sockaddr *)&place.addr, place.length);
    SAY(connect(other, (struct sockaddr *)&place.addr, place.length));
    round_trips(other, CLIENT, 60, 32);
    meet();
    meet();
    int third = (int)MUST(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    rc = connect(third, (struct sockaddr *)&place.addr, place.length); /* nobody listens now */
    if (rc < 0 && errno == EINPROGRESS) {
        await_event(third, POLLOUT | POLLERR);
        MUST(getsockopt(third, SOL_SOCKET, SO_ERROR, &error, &length));
        errno = error;
    }
    say("refused: %s", strerrorname_np(errno));
    MUST(close(third));
    MUST(close(other));
    char byte;
    say("end %zd", recv(fd, &byte, 1, 0));
}

int main(void)
{
    return run_pair(server, client);
}
