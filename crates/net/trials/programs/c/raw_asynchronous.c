// about: io_submit by number on upgraded connections, with bytes on their way: reads, writes, and polls of them and of an epoll set
// upgraded: yes
// limit: 15
#include "trial.h"
#include <linux/aio_abi.h>

static aio_context_t context;

static long long submitted(struct iocb *request)
{
    struct io_event event = {0};
    struct timespec wait = {.tv_sec = LONG_MS / 1000};
    MUST(syscall(SYS_io_submit, context, 1, &request));
    if (MUST(syscall(SYS_io_getevents, context, 1, 1, &event, &wait)) != 1)
        give_up("nothing is done");
    return event.res;
}

static void server(int fd)
{
    char text[16] = {0};
    int listener = open_door();
    for (int way = 0; way < 3; way++) {
        int one = warm_server(listener);
        send_all(one, "in flight", 9);
        meet();
        recv_all(one, text, 7);
        say("%s", text);
        round_trips(one, SERVER, 20, 64);
        MUST(close(one));
    }
    prove(fd, SERVER); /* no request has named it */
}

static void client(int fd)
{
    int port = find_door();
    MUST(syscall(SYS_io_setup, 4, &context));
    for (int way = 0; way < 3; way++) {
        char text[16] = {0};
        struct iocb in = {.aio_fildes = (uint32_t)connect_at("127.0.0.1", port)}, out = in;
        int one = (int)in.aio_fildes, set = (int)MUST(epoll_create1(0));
        struct epoll_event event = {.events = EPOLLIN};
        MUST(epoll_ctl(set, EPOLL_CTL_ADD, one, &event));
        warm_up(one, CLIENT);
        await_bytes(one, 9);
        meet();
        in.aio_lio_opcode = way == 0 ? IOCB_CMD_PREAD : IOCB_CMD_POLL;
        in.aio_buf = way == 0 ? (uint64_t)(uintptr_t)text : POLLIN;
        in.aio_nbytes = way == 0 ? 9 : 0;
        in.aio_fildes = (uint32_t)(way == 2 ? set : one);
        say("way %d: %lld", way, way == 0 ? submitted(&in) : submitted(&in) & POLLIN);
        if (way != 0)
            recv_all(one, text, 9);
        out.aio_lio_opcode = IOCB_CMD_PWRITE;
        out.aio_buf = (uint64_t)(uintptr_t) "written";
        out.aio_nbytes = 7;
        say("%s, %lld", text, submitted(&out));
        round_trips(one, CLIENT, 20, 64);
        MUST(close(one));
        MUST(close(set));
    }
    prove(fd, CLIENT);
}

int main(void)
{
    return run_pair(server, client);
}
