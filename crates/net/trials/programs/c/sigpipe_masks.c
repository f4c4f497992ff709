// about: SIGPIPE that is blocked, waited for, ignored, and kept through fork; it goes to the thread that wrote, one at a time
// upgraded: yes
#include "trial.h"

static volatile pid_t told;

static void on_pipe(int number)
{
    (void)number;
    told = gettid();
    trial_signals++;
}

static int line;

static void *writer(void *unused)
{
    (void)unused;
    told = 0;
    (void)!write(line, "x", 1);
    say("the writer is told: %d", told == gettid());
    return NULL;
}

static void server(int fd)
{
    say("end %zd", recv(fd, &(char){0}, 1, 0));
    meet();
}

static void client(int fd)
{
    sigset_t pipes, pending;
    pthread_t thread;
    struct timespec none = {0};
    line = fd;
    sigemptyset(&pipes);
    sigaddset(&pipes, SIGPIPE);
    signal(SIGPIPE, on_pipe);
    MUST(shutdown(fd, SHUT_WR));
    MUST(-pthread_create(&thread, NULL, writer, NULL));
    MUST(-pthread_join(thread, NULL));
    say("signals %d", (int)trial_signals);
    MUST(sigprocmask(SIG_BLOCK, &pipes, NULL));
    SAY(write(fd, "x", 1));
    SAY(write(fd, "x", 1));
    MUST(sigpending(&pending));
    say("pending %d, handled %d", sigismember(&pending, SIGPIPE), (int)trial_signals);
    say("taken %d", sigtimedwait(&pipes, NULL, &none) == SIGPIPE);
    SAY(sigtimedwait(&pipes, NULL, &none));
    SAY(send(fd, "x", 1, MSG_NOSIGNAL));
    SAY(sigtimedwait(&pipes, NULL, &none));
    SAY(write(fd, "x", 1));
    MUST(sigprocmask(SIG_UNBLOCK, &pipes, NULL)); /* delivered here */
    say("signals %d", (int)trial_signals);
    signal(SIGPIPE, SIG_IGN);
    SAY(write(fd, "x", 1));
    signal(SIGPIPE, SIG_DFL);
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        (void)!write(fd, "x", 1);
        _exit(0);
    }
    int status;
    MUST(waitpid(child, &status, 0));
    say("child by signal %d", WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
