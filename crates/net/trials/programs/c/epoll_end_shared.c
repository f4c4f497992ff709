// about: two processes that sleep in one epoll set are both told of the connection's end
// upgraded: yes
#include "trial.h"

static int room;

static void server(int fd)
{
    meet();
    MUST(close(fd));
    meet();
}

/* The events that a wait reports, for an exit status; 0 when none came. */
static int waited(int set)
{
    struct epoll_event got[4] = {{0}};
    int count = (int)MUST(epoll_wait(set, got, room, 5000));
    return count == 1 && got[0].events == (EPOLLIN | EPOLLRDHUP) ? 1 : count == 0 ? 0 : 2;
}

static void client(int fd)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.u32 = 5};
    int set = (int)MUST(epoll_create1(0)), status;
    pid_t children[2];
    char byte;
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    for (int i = 0; i < 2; i++) {
        children[i] = (pid_t)MUST(fork());
        if (children[i] == 0)
            _exit(waited(set));
    }
    for (int i = 0; i < 2; i++)
        await_asleep(children[i]);
    meet();
    for (int i = 0; i < 2; i++) {
        MUST(waitpid(children[i], &status, 0));
        say("child %d: %d", i, WEXITSTATUS(status));
    }
    say("parent: %d", waited(set));
    say("end %zd", recv(fd, &byte, 1, 0));
    meet();
}

int main(void)
{
    for (room = 1; room <= 4; room += 3) {
        int failed = run_pair(server, client);
        if (failed)
            return failed;
    }
    return 0;
}
