// about: a forked child closes the epoll set or its connection; the parent still gets events
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    for (int i = 0; i < 2; i++) {
        meet();
        meet(); /* the child has closed, the parent waits */
        send_all(fd, "news", 4);
    }
    meet();
}

static void client(int fd)
{
    char text[8] = {0};
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = 5};
    int set = (int)MUST(epoll_create1(0));
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    say("nothing yet: %d", epoll_wait(set, &event, 1, 0));
    for (int i = 0; i < 2; i++) {
        int status;
        meet();
        pid_t child = (pid_t)MUST(fork());
        if (child == 0) {
            MUST(close(i == 0 ? set : fd));
            _exit(0);
        }
        MUST(waitpid(child, &status, 0));
        meet();
        memset(&event, 0, sizeof event);
        say("%d: told %d", i, epoll_wait(set, &event, 1, LONG_MS));
        recv_all(fd, text, 4);
        say("%s %u", text, event.data.u32);
    }
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
