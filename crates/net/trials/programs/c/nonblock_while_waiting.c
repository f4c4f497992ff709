// about: O_NONBLOCK set while a thread waits holds for later calls only
// upgraded: yes
#include "trial.h"

#define BULK (64 << 20)

static int connection;
static ssize_t moved;
static char *bulk;

static void set_flags(long flags, bool unseen)
{
    if (unseen)
        MUST(witness_call(SYS_fcntl, connection, F_SETFL, flags, 0, 0));
    else
        MUST(fcntl(connection, F_SETFL, flags));
}

static void receives(void)
{
    moved = recv(connection, bulk, 8, MSG_WAITALL);
}

static void sends(void)
{
    moved = send(connection, bulk, BULK, 0);
}

static void server(int fd)
{
    bulk = calloc(1, BULK);
    for (int unseen = 0; unseen < 2; unseen++) {
        meet();
        send_all(fd, "half", 4);
        poll(NULL, 0, SHORT_MS); /* the other side takes this and sleeps again */
        send_all(fd, "more", 4);
        meet();
        recv_all(fd, bulk, BULK);
    }
    round_trips(fd, SERVER, 50, 64);
    prove(fd, SERVER);
}

static void client(int fd)
{
    struct sleeper sleeper;
    bulk = calloc(1, BULK);
    connection = fd;
    for (int unseen = 0; unseen < 2; unseen++) {
        start_sleeper(&sleeper, receives);
        set_flags(O_RDWR | O_NONBLOCK, unseen);
        meet();
        join_sleeper(&sleeper);
        say("received %zd: %.8s", moved, bulk);
        SAY(recv(fd, bulk, 8, MSG_WAITALL));
        set_flags(O_RDWR, false);
        start_sleeper(&sleeper, sends);
        set_flags(O_RDWR | O_NONBLOCK, unseen);
        meet();
        join_sleeper(&sleeper);
        say("sent %zd", moved);
        set_flags(O_RDWR, false);
    }
    round_trips(fd, CLIENT, 50, 64);
    prove(fd, CLIENT);
}

int main(void)
{
    return run_pair(server, client);
}
