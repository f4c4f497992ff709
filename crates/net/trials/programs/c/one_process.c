// about: both ends of a connection in one process: one thread using them in turn, then two threads
// upgraded: yes
#include "trial.h"

static int ends[2];

static void *other_end(void *unused)
{
    round_trips(ends[1], SERVER, 500, 200);
    return unused;
}

int main(void)
{
    char text[256];
    int listener = listen_at("127.0.0.1");
    ends[0] = connect_at("127.0.0.1", port_of(listener));
    ends[1] = accept_at(listener);
    for (int i = 0; i < 200; i++) {
        send_all(ends[0], "over", 4);
        recv_all(ends[1], text, 4);
        send_all(ends[1], "back", 4);
        recv_all(ends[0], text, 4);
    }
    say("in turn: %.4s", text);
    prove_alone(ends[0], ends[1]);
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, other_end, NULL));
    round_trips(ends[0], CLIENT, 500, 200);
    MUST(pthread_join(thread, NULL));
    struct pollfd both[2] = {{.fd = ends[0], .events = POLLIN}, {.fd = ends[1], .events = POLLIN}};
    send_all(ends[0], "x", 1);
    int rc = poll(both, 2, LONG_MS);
    say("poll of both %d %#x %#x", rc, (unsigned)both[0].revents, (unsigned)both[1].revents);
    MUST(close(ends[0]));
    recv_all(ends[1], text, 1);
    say("end %zd", recv(ends[1], text, 1, 0));
    return 0;
}
