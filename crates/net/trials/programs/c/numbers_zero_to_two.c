// about: connections that get the numbers 0, 1 and 2 from accept, connect and dup after those were closed: served by every call, and perror goes to one
// upgraded: any
#include "trial.h"

static void server(int fd)
{
    int listener = open_door();
    MUST(dup2(trial_out, 30));
    trial_out = 30;
    MUST(close(0));
    MUST(close(1));
    MUST(close(2));
    for (int i = 0; i < 3; i++) {
        int other = accept_at(listener);
        say("accepted as %d", other);
        round_trips(other, SERVER, 100, 64);
    }
    struct pollfd entries[3] = {{.fd = 0, .events = POLLIN}, {.fd = 1, .events = POLLIN}, {.fd = 2, .events = POLLIN}};
    say("quiet %d", poll(entries, 3, 0));
    meet();
    say("one %d", poll(entries, 3, LONG_MS));
    char text[8] = {0};
    SAY(read(1, text, 8));
    say("%s", text);
    errno = EPIPE;
    perror("to the third");
    fprintf(stdout, "to the second\n");
    fflush(stdout);
    for (int i = 0; i < 3; i++)
        round_trips(i, SERVER, 50, 64);
    MUST(close(1));
    SAY(dup(0));
    round_trips(1, SERVER, 50, 64);
    MUST(close(0));
    round_trips(1, SERVER, 50, 64);
    round_trips(fd, SERVER, 10, 64);
    _exit(0);
}

static void client(int fd)
{
    int port = find_door(), others[3];
    char text[64] = {0};
    for (int i = 0; i < 3; i++) {
        others[i] = connect_at("127.0.0.1", port);
        round_trips(others[i], CLIENT, 100, 64);
    }
    meet();
    send_all(others[1], "middle", 6);
    recv_all(others[2], text, 26);
    say("%.25s", text);
    recv_all(others[1], text, 14);
    say("%.13s", text);
    for (int i = 0; i < 3; i++)
        round_trips(others[i], CLIENT, 50, 64);
    SAY(recv(others[1], text, 1, 0));
    round_trips(others[0], CLIENT, 50, 64);
    round_trips(others[0], CLIENT, 50, 64);
    round_trips(fd, CLIENT, 10, 64);
}

int main(void)
{
    return run_pair(server, client);
}
