// about: TCP_ZEROCOPY_RECEIVE on an upgraded connection: every byte is mapped, or left to recv
// upgraded: yes
#include "trial.h"

enum { BYTES = 100005, ROOM = 1 << 18 };

static void server(int fd)
{
    static unsigned char data[BYTES];
    for (int at = 0; at < BYTES; at++)
        data[at] = pattern(1, (uint64_t)at);
    for (int turn = 0; turn < 2; turn++) {
        meet();
        send_all(fd, data, BYTES);
    }
    char byte;
    say("end %zd", recv(fd, &byte, 1, 0));
}

static void client(int fd)
{
    static unsigned char rest[ROOM];
    void *room = mmap(NULL, ROOM, PROT_READ, MAP_SHARED, fd, 0);
    MUST(room == MAP_FAILED ? -1 : 0);
    for (int turn = 0; turn < 2; turn++) {
        int got = 0, wrong = 0;
        meet();
        while (got < BYTES) {
            await_event(fd, POLLIN);
            struct tcp_zerocopy_receive call = {.address = (uintptr_t)room, .length = ROOM};
            socklen_t length = sizeof call;
            MUST(getsockopt(fd, IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE, &call, &length));
            if (call.length == 0 && call.recv_skip_hint == 0)
                give_up("nothing, although poll says that there is");
            for (unsigned at = 0; at < call.length; at++)
                wrong += ((unsigned char *)room)[at] != pattern(1, (uint64_t)got++);
            recv_all(fd, rest, call.recv_skip_hint);
            for (unsigned at = 0; at < call.recv_skip_hint; at++)
                wrong += rest[at] != pattern(1, (uint64_t)got++);
        }
        say("got %d, wrong %d", got, wrong);
    }
}

int main(void)
{
    return run_pair(server, client);
}
