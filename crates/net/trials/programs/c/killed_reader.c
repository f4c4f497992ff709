// about: a peer killed with unread bytes while our sender sleeps: a part, then ECONNRESET, then EPIPE; poll says so, too
// upgraded: yes
#include "trial.h"

static int line;
static pid_t victim;

static void sending(void)
{
    static char block[8 << 20];
    ssize_t sent = send(line, block, sizeof block, MSG_NOSIGNAL);
    say("a part, or the reset: %d", sent > 0 || (sent == -1 && errno == ECONNRESET));
}

static void server(int first)
{
    struct sleeper sleeper;
    int listener = open_door();
    meet();
    victim = find_door(); /* a number as good as a port */
    line = warm_server(listener);
    start_sleeper(&sleeper, sending);
    MUST(kill(victim, SIGKILL));
    join_sleeper(&sleeper);
    await_event(line, POLLHUP);
    struct pollfd entry = {.fd = line, .events = POLLIN | POLLOUT | POLLRDHUP};
    SAY(poll(&entry, 1, 0));
    say("hang-up %d, writable %d", (entry.revents & POLLHUP) != 0, (entry.revents & POLLOUT) != 0);
    ssize_t rc = send(line, "x", 1, MSG_NOSIGNAL);
    say("the reset, or its echo: %d", rc == -1 && (errno == ECONNRESET || errno == EPIPE));
    SAY(send(line, "x", 1, MSG_NOSIGNAL));
    SAY(recv(line, &(char){0}, 1, 0));
    round_trips(first, SERVER, 20, 64);
}

static void client(int first)
{
    int port = find_door(), status;
    pid_t child = (pid_t)MUST(fork());
    if (child == 0) {
        MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
        MUST(close(first));
        warm_client(port);
        for (;;)
            pause(); /* reads nothing */
    }
    meet();
    MUST(write(trial_meet[1], &child, sizeof child));
    MUST(waitpid(child, &status, 0));
    say("child %#x", status);
    round_trips(first, CLIENT, 20, 64);
}

int main(void)
{
    return run_pair(server, client);
}
