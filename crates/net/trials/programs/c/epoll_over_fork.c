// about: an epoll set made before fork works in the child, and its events are seen by one at a time
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    meet();
    send_all(fd, "one!", 4);
    meet();
    meet();
    send_all(fd, "two!", 4);
    meet();
}

static void client(int fd)
{
    char text[8] = {0};
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = 5};
    int set = (int)MUST(epoll_create1(0)), go[2];
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    MUST(pipe(go));
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        memset(&event, 0, sizeof event);
        MUST(read(go[0], text, 1));
        int rc = epoll_wait(set, &event, 1, LONG_MS);
        say("child %d %u", rc, event.data.u32);
        recv_all(fd, text, 4);
        say("child %s", text);
        _exit(0);
    }
    meet();
    MUST(write(go[1], "g", 1)); /* the child takes the first */
    int status;
    MUST(waitpid(child, &status, 0));
    say("child ended %d", status);
    say("drained: %d", epoll_wait(set, &event, 1, 0));
    meet();
    meet();
    memset(&event, 0, sizeof event);
    int rc = epoll_wait(set, &event, 1, LONG_MS);
    say("parent %d %u", rc, event.data.u32);
    recv_all(fd, text, 4);
    say("parent %s", text);
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
