// about: a raw system call reads one message at each step of the hand-shake: the rest is in order
// upgraded: any, one that lost count of a message stays on TCP
#include "trial.h"

#define ROUNDS 24
static int listener, port;

static void server(int fd)
{
    (void)fd;
    for (int i = 0; i < ROUNDS; i++) {
        int one = accept_at(listener);
        round_trips(one, SERVER, i, 64);
        send_all(one, "raw.", 4);
        meet();
        meet(); /* it has read that */
        send_all(one, "next", 4);
        round_trips(one, SERVER, 20, 64);
        MUST(close(one));
    }
}

static void client(int fd)
{
    (void)fd;
    for (int i = 0; i < ROUNDS; i++) {
        char text[4] = {0};
        int one = connect_at("127.0.0.1", port);
        round_trips(one, CLIENT, i, 64);
        meet();
        /* What is not on TCP is in a ring by now, where only the library finds it. */
        if (witness_call(SYS_recvfrom, one, (long)text, sizeof text, MSG_DONTWAIT, 0) < 0)
            recv_all(one, text, sizeof text);
        say("%d: %.4s", i, text);
        meet();
        recv_all(one, text, sizeof text);
        say("%.4s", text);
        round_trips(one, CLIENT, 20, 64);
        MUST(close(one));
    }
}

int main(void)
{
    listener = listen_at("127.0.0.1");
    port = port_of(listener);
    return run_pair(server, client);
}
