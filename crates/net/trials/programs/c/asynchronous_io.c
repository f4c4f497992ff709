// about: aio_write, aio_read and lio_listio on an upgraded connection: libc's own threads read and write it
// upgraded: yes
#include "trial.h"
#include <aio.h>

static void finish(const char *what, struct aiocb *request)
{
    const struct aiocb *list[] = {request};
    while (aio_error(request) == EINPROGRESS)
        (void)!aio_suspend(list, 1, NULL);
    int error = aio_error(request);
    say("%s: %zd %s", what, aio_return(request), error == 0 ? "fine" : strerrorname_np(error));
}

static void server(int fd)
{
    char text[16] = {0};
    recv_all(fd, text, 7);
    say("%s", text);
    send_all(fd, "answer", 6);
    recv_all(fd, text, 8);
    say("%.8s", text);
    round_trips(fd, SERVER, 20, 64);
    say("end %zd", recv(fd, text, 1, 0));
}

static void client(int fd)
{
    char text[16] = "request";
    struct aiocb out = {.aio_fildes = fd, .aio_buf = text, .aio_nbytes = 7};
    MUST(aio_write(&out));
    finish("write", &out);
    char answer[16] = {0};
    struct aiocb in = {.aio_fildes = fd, .aio_buf = answer, .aio_nbytes = 6};
    MUST(aio_read(&in));
    finish("read", &in);
    say("%s", answer);
    struct aiocb first = {.aio_fildes = fd, .aio_buf = (void *)"listed!!", .aio_nbytes = 8, .aio_lio_opcode = LIO_WRITE};
    struct aiocb *const list[] = {&first};
    SAY(lio_listio(LIO_WAIT, list, 1, NULL));
    finish("listed", &first);
    round_trips(fd, CLIENT, 20, 64);
    MUST(close(fd));
}

int main(void)
{
    return run_pair(server, client);
}
