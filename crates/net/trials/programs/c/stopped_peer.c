// about: a peer that is stopped for a while: what it is sent waits, sends go on until full, polls stay silent; SIGCONT, and all arrives
// upgraded: yes
#include "trial.h"

enum { MESSAGES = 300 };

static void await_stopped(pid_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    for (int i = 0; i < LONG_MS; i++) {
        int file = (int)MUST(open(path, O_RDONLY | O_CLOEXEC));
        ssize_t got = MUST(read(file, text, sizeof text - 1));
        MUST(close(file));
        text[got] = 0;
        if (strrchr(text, ')')[2] == 'T')
            return;
        poll(NULL, 0, 1);
    }
    errno = ETIMEDOUT;
    give_up("it does not stop");
}

static void server(int fd)
{
    char text[64];
    pid_t peer = find_door(); /* a number as good as a port */
    MUST(kill(peer, SIGSTOP));
    await_stopped(peer);
    for (int i = 0; i < MESSAGES; i++) {
        memset(text, i, sizeof text);
        send_all(fd, text, sizeof text);
    }
    struct pollfd entry = {.fd = fd, .events = POLLIN | POLLRDHUP};
    say("silent %d", poll(&entry, 1, SHORT_MS));
    MUST(kill(peer, SIGCONT));
    int wrong = 0;
    for (int i = 0; i < MESSAGES; i++) {
        recv_all(fd, text, sizeof text);
        wrong += text[0] != (char)i || text[63] != (char)i;
    }
    say("wrong %d", wrong);
    send_all(fd, "!", 1);
    say("end %zd", recv(fd, text, 1, 0));
}

static void client(int fd)
{
    char text[64];
    pid_t self = getpid();
    MUST(write(trial_meet[1], &self, sizeof self));
    for (int i = 0; i < MESSAGES; i++) { /* asleep in the first of these */
        recv_all(fd, text, sizeof text);
        send_all(fd, text, sizeof text);
    }
    recv_all(fd, text, 1);
    say("%c", text[0]);
}

int main(void)
{
    return run_pair(server, client);
}
