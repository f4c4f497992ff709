// about: a child in a network namespace of its own, made by the bare system call, goes on with its parent's connection
// upgraded: yes
#include "trial.h"
#include <sched.h>

static void server(int fd)
{
    char text[4];
    for (int i = 0; i < 4; i++) {
        recv_all(fd, text, 4);
        poll(NULL, 0, SHORT_MS); /* lets who asked go to sleep */
        send_all(fd, text, 4);
    }
    say("end %zd", recv(fd, text, 1, 0));
}

static void ask(int fd)
{
    char text[8] = {0};
    struct epoll_event event = {.events = EPOLLIN};
    int set = (int)MUST(epoll_create1(EPOLL_CLOEXEC));
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    for (int i = 0; i < 2; i++) {
        send_all(fd, i ? "more" : "ask?", 4);
        SAY(epoll_wait(set, &event, 1, LONG_MS));
        recv_all(fd, text, 4);
        say("%s", text);
    }
    MUST(close(set));
}

static void client(int fd)
{
    int status, flags = CLONE_NEWNET | SIGCHLD | (geteuid() == 0 ? 0 : CLONE_NEWUSER);
    pid_t child = (pid_t)MUST(syscall(SYS_clone, flags, 0, 0, 0, 0));
    if (child == 0) {
        ask(fd);
        _exit(0);
    }
    MUST(waitpid(child, &status, 0));
    say("child %#x", status);
    ask(fd);
    MUST(close(fd));
}

int main(void)
{
    return run_pair(server, client);
}
