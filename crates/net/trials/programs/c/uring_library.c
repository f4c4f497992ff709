// about: liburing on connections that were upgraded, with bytes on their way, through each call that submits; files and another connection are left alone
// upgraded: yes
// flags: -luring
#include "each_way.h"
#include <liburing.h>

#define WAYS 6
static int listener, port;

static void server(int fd)
{
    serve_each_way(fd, listener, WAYS);
}

static int result_of(struct io_uring *ring)
{
    struct io_uring_cqe *result = NULL;
    if (io_uring_wait_cqe(ring, &result) != 0)
        give_up("no completion");
    int value = result->res;
    io_uring_cqe_seen(ring, result);
    return value;
}

static int submit(struct io_uring *ring, int way)
{
    struct io_uring_cqe *result = NULL;
    struct __kernel_timespec limit = {.tv_sec = LONG_MS / 1000};
    switch (way) {
    case 0: io_uring_submit(ring); break;
    case 1: io_uring_submit_and_wait(ring, 1); break;
    case 2: io_uring_submit_and_wait_timeout(ring, &result, 1, &limit, NULL); break;
    case 3: io_uring_submit_and_get_events(ring); break;
    default: io_uring_submit(ring);
    }
    return result_of(ring);
}

static void talk(struct io_uring *ring, int way, int one)
{
    char text[16] = {0};
    int place = one;
    if (way == 4)
        say("register %d", io_uring_register_files(ring, &one, 1));
    if (way == 5) {
        int none = -1;
        say("register %d", io_uring_register_files(ring, &none, 1));
        say("update %d", io_uring_register_files_update(ring, 0, &one, 1));
    }
    if (way >= 4)
        place = 0;
    for (int i = 0; i < 2; i++) {
        struct io_uring_sqe *entry = io_uring_get_sqe(ring);
        if (i == 0)
            io_uring_prep_recv(entry, place, text, 9, MSG_WAITALL);
        else
            io_uring_prep_send(entry, place, "by ring", 7, 0);
        if (way >= 4)
            entry->flags |= IOSQE_FIXED_FILE;
        say("%d", submit(ring, way));
    }
    if (way >= 4)
        say("unregister %d", io_uring_unregister_files(ring));
    say("%s", text);
}

static void client(int fd)
{
    struct io_uring ring;
    int file = (int)MUST(open("uring", O_RDWR | O_CREAT | O_TRUNC, 0600));
    for (int way = 0; way < WAYS; way++) {
        struct io_uring_params params = {.flags = way == 2 ? IORING_SETUP_SQE128 : 0};
        say("ring %d", way % 2 ? io_uring_queue_init(8, &ring, 0) : io_uring_queue_init_params(8, &ring, &params));
        for (int i = 0; i < 20; i++) { /* more than once around */
            io_uring_prep_write(io_uring_get_sqe(&ring), file, "text", 4, 0);
            if (submit(&ring, way) != 4)
                give_up("the file");
        }
        int one = connect_at("127.0.0.1", port);
        round_trips(one, CLIENT, 60, 64);
        await_bytes(one, 9);
        meet();
        talk(&ring, way, one);
        round_trips(one, CLIENT, 20, 64);
        MUST(close(one));
        io_uring_queue_exit(&ring);
    }
    prove(fd, CLIENT);
}

int main(void)
{
    listener = listen_at("127.0.0.1");
    port = port_of(listener);
    return run_pair(server, client);
}
