// about: EOF against reset: close with unread data, SO_LINGER 0, a clean close, and who sees what
// upgraded: yes
#include "trial.h"

static void see_the_end(const char *what, int fd)
{
    char text[16];
    await_event(fd, POLLRDHUP | POLLHUP | POLLERR);
    struct pollfd entry = {.fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP};
    poll(&entry, 1, LONG_MS);
    say("%s: poll %#x", what, (unsigned)entry.revents);
    say_rc("recv", recv(fd, text, sizeof text, 0));
    say_rc("recv again", recv(fd, text, sizeof text, 0));
    int error = -1;
    socklen_t length = sizeof error;
    MUST(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length));
    say("SO_ERROR %d", error);
}

static int port;

/* One further connection, warmed up, for each way to end one. */
static int next_server(int listener)
{
    int fd = accept_at(listener);
    warm_up(fd, SERVER);
    return fd;
}

static int next_client(void)
{
    int fd = connect_at("127.0.0.1", port);
    warm_up(fd, CLIENT);
    return fd;
}

static void server(int fd)
{
    int listener = listen_at("127.0.0.1");
    int own = port_of(listener);
    MUST(write(trial_meet[1], &own, sizeof own));
    MUST(close(fd)); /* 1: clean */
    meet();

    fd = next_server(listener); /* 2: with unread data */
    meet();
    await_bytes(fd, 6);
    MUST(close(fd));
    meet();

    fd = next_server(listener); /* 3: linger 0 */
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    MUST(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
    MUST(close(fd));
    meet();

    fd = next_server(listener); /* 4: data sent, then unread data resets */
    send_all(fd, "parting", 7);
    meet();
    await_bytes(fd, 6);
    MUST(close(fd));
    meet();
}

static void client(int fd)
{
    MUST(read(trial_meet[0], &port, sizeof port));
    see_the_end("clean", fd);
    MUST(close(fd));
    meet();

    fd = next_client();
    send_all(fd, "unread", 6);
    meet();
    meet();
    see_the_end("unread data", fd);
    SAY(send(fd, "x", 1, MSG_NOSIGNAL));
    MUST(close(fd));

    fd = next_client();
    meet();
    see_the_end("linger 0", fd);
    MUST(close(fd));

    fd = next_client();
    meet();
    send_all(fd, "unread", 6);
    meet();
    await_event(fd, POLLERR | POLLHUP);
    char text[16];
    say_rc("after parting words, recv is 7 or the reset", recv(fd, text, 16, 0) >= -1);
}

int main(void)
{
    return run_pair(server, client);
}
