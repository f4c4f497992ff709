// about: the __*_chk entry points work, and still abort a program that lies about its buffer
// upgraded: yes
#include "trial.h"

extern ssize_t read_chk(int, void *, size_t, size_t) __asm__("__read_chk");
extern ssize_t recv_chk(int, void *, size_t, size_t, int) __asm__("__recv_chk");
extern ssize_t recvfrom_chk(int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *) __asm__("__recvfrom_chk");
extern int poll_chk(struct pollfd *, nfds_t, int, size_t) __asm__("__poll_chk");
extern int ppoll_chk(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t) __asm__("__ppoll_chk");

static void server(int fd)
{
    for (int i = 0; i < 3; i++) {
        send_all(fd, "fortify", 7);
        meet();
    }
    meet();
}

static void overflow(int fd, int which)
{
    fflush(NULL);
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        char small[4];
        struct pollfd entry = {.fd = fd, .events = POLLIN};
        close(STDERR_FILENO);
        if (which == 0)
            (void)!read_chk(fd, small, 8, sizeof small);
        else if (which == 1)
            (void)!recv_chk(fd, small, 8, sizeof small, MSG_DONTWAIT);
        else
            poll_chk(&entry, 2, 0, sizeof entry);
        _exit(0);
    }
    int status;
    MUST(waitpid(child, &status, 0));
    say("overflow %d: %s %d", which, WIFSIGNALED(status) ? "signal" : "exit",
        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static void client(int fd)
{
    char text[16] = {0};
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    struct timespec wait = {.tv_sec = LONG_MS / 1000};
    int rc = poll_chk(&entry, 1, LONG_MS, sizeof entry);
    say("poll %d %#x", rc, (unsigned)entry.revents);
    await_bytes(fd, 7);
    say("read %zd %s", read_chk(fd, text, 7, sizeof text), text);
    meet();
    rc = ppoll_chk(&entry, 1, &wait, NULL, sizeof entry);
    say("ppoll %d %#x", rc, (unsigned)entry.revents);
    await_bytes(fd, 7);
    say("recv %zd %s", recv_chk(fd, text, 7, sizeof text, 0), text);
    meet();
    await_bytes(fd, 7);
    say("recvfrom %zd %s", recvfrom_chk(fd, text, 7, sizeof text, 0, NULL, NULL), text);
    meet();
    for (int which = 0; which < 3; which++)
        overflow(fd, which);
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
