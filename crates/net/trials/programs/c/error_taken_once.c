// about: the error of a reset with data in front of it: who reads, writes, asks SO_ERROR or shuts down first, and what is left for the others
// upgraded: yes
#include "trial.h"

static void show(int fd)
{
    int error = -1;
    socklen_t length = sizeof error;
    MUST(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length));
    say("  error %s", error == 0 ? "none" : strerrorname_np(error));
}

static void server(int fd)
{
    int listener = open_door();
    for (int i = 0; i < 4; i++) {
        int other = warm_server(listener);
        meet(); /* what the client has sent stays unread */
        await_bytes(other, 6);
        MUST(close(other));
        meet();
    }
    close_hard(fd);
}

static void client(int fd)
{
    char text[8];
    int port = find_door();
    for (int i = 0; i < 4; i++) {
        int other = warm_client(port), twin = (int)MUST(dup(other));
        send_all(other, "unread", 6);
        meet();
        meet();
        await_event(other, POLLERR);
        switch (i) {
        case 0: SAY(send(other, "x", 1, MSG_NOSIGNAL)); break;
        case 1: SAY(recv(other, text, 8, 0)); break;
        case 2: show(other); break;
        default: SAY(shutdown(other, SHUT_WR)); break;
        }
        show(twin);
        SAY(recv(twin, text, 8, 0));
        SAY(send(twin, "x", 1, MSG_NOSIGNAL));
        SAY(close(other));
        SAY(recv(twin, text, 8, 0));
        MUST(close(twin));
    }
    await_event(fd, POLLERR);
    struct pollfd entry = {.fd = fd};
    SAY(poll(&entry, 1, 0));
    show(fd);
    SAY(poll(&entry, 1, 0)); /* HUP stays, ERR was the error */
    say("events %#x", (unsigned)entry.revents);
}

int main(void)
{
    return run_pair(server, client);
}
