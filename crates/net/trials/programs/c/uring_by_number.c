// about: a ring made by syscall(2) on a process whose connections are upgraded, with bytes on their way: all go back to TCP, those that the ring never names as well, and later ones stay there
// upgraded: any, the first before the ring is made and none after
#include "uring.h"

static void server(int fd)
{
    char text[16] = {0};
    int listener = open_door(), other = warm_server(listener);
    send_all(fd, "in flight", 9);
    send_all(other, "in flight", 9);
    meet();
    recv_all(fd, text, 7);
    say("%s", text);
    recv_all(other, text, 7);
    say("%s", text);
    round_trips(fd, SERVER, 60, 64);
    for (int i = 0; i < 2; i++) {
        long long before = witness_received(other);
        round_trips(other, SERVER, 60, 64);
        say("by TCP: %d", witness_received(other) - before > 3000);
        MUST(close(other));
        other = i == 0 ? accept_at(listener) : -1;
    }
    say("end %zd", recv(fd, text, 1, 0));
}

static void client(int fd)
{
    char text[16] = {0};
    int port = find_door(), other = warm_client(port);
    await_bytes(fd, 9);
    await_bytes(other, 9);
    meet();
    struct uring ring = uring_begin(0);
    uring_recv_all(&ring, fd, text, 9);
    say("%s", text);
    say("send %d", uring_move(&ring, IORING_OP_SEND, fd, (char[]){"by ring"}, 7));
    memset(text, 0, sizeof text);
    recv_all(other, text, 9);
    say("%s", text);
    send_all(other, "by libc", 7);
    round_trips(fd, CLIENT, 60, 64);
    MUST(close(ring.fd));
    for (int i = 0; i < 2; i++) {
        round_trips(other, CLIENT, 60, 64);
        MUST(close(other));
        other = i == 0 ? connect_at("127.0.0.1", port) : -1;
    }
    MUST(close(fd));
}

int main(void)
{
    return run_pair(server, client);
}
