// about: connections opened, copied, set, shut and closed by the numbers of calls, and by the further names that libc has for them
// upgraded: yes
#include "trial.h"

extern int __connect(int, const struct sockaddr *, socklen_t);
extern int __dup2(int, int);
extern int __fcntl(int, int, ...);
extern int __close(int);
extern pid_t __fork(void);
extern FILE *_IO_fdopen(int, const char *);

#define ROUNDS 4
static int listener, port;

static void server(int fd)
{
    char text[16] = {0};
    for (int i = 0; i < ROUNDS; i++) {
        int one = (int)MUST(i % 2 ? syscall(SYS_accept4, listener, NULL, NULL, SOCK_CLOEXEC)
                                  : syscall(SYS_accept, listener, NULL, NULL));
        warm_up(one, SERVER);
        round_trips(one, SERVER, 40, 64);
        say("end %zd", recv(one, text, 1, 0));
        send_all(one, "bye", 3);
        MUST(syscall(SYS_close, one));
    }
    for (int i = 0; i < 2; i++) {
        recv_all(fd, text, 12);
        say("%s", text);
        send_all(fd, "answer\n", 7);
    }
    say("end %zd", recv(fd, text, 1, 0));
}

/* A copy of the connection, made the given way, at 50 or above. */
static int copied(int way, int fd)
{
    switch (way) {
    case 0:
        return __dup2(fd, 50);
    case 1:
        return __fcntl(fd, F_DUPFD, 50);
    case 2:
        return (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 50);
    default:
#ifdef SYS_dup2
        return (int)syscall(SYS_dup2, fd, 50);
#else
        return (int)syscall(SYS_dup3, fd, 50, 0);
#endif
    }
}

static void open_and_close(int way)
{
    struct place place = place_of("127.0.0.1", port);
    char text[8] = {0};
    int one = (int)MUST(syscall(SYS_socket, AF_INET, SOCK_STREAM, 0)), on = 1;
    if (way % 2)
        MUST(syscall(SYS_connect, one, &place.addr, place.length));
    else
        MUST(__connect(one, (struct sockaddr *)&place.addr, place.length));
    MUST(syscall(SYS_setsockopt, one, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
    warm_up(one, CLIENT);
    int other = copied(way, one);
    say("copy %d", other);
    round_trips(other, CLIENT, 20, 64);
    MUST(way % 2 ? syscall(SYS_close, one) : __close(one));
    round_trips(other, CLIENT, 20, 64);
    MUST(syscall(SYS_fcntl, other, F_SETFL, O_NONBLOCK));
    SAY(recv(other, text, 1, 0));
    MUST(syscall(SYS_fcntl, other, F_SETFL, 0));
    MUST(syscall(SYS_shutdown, other, SHUT_WR));
    recv_all(other, text, 3);
    say("%s, end %zd", text, recv(other, text, 1, 0));
    MUST(way % 2 ? __close(other) : syscall(SYS_close_range, other, other, 0));
}

static void client(int fd)
{
    char line[16] = {0};
    int status;
    for (int way = 0; way < ROUNDS; way++)
        open_and_close(way);
    pid_t child = (pid_t)MUST(__fork());
    if (child == 0) {
        send_all(fd, "of the child", 12);
        recv_all(fd, line, 7);
        _exit(line[0] == 'a' ? 0 : 1);
    }
    MUST(waitpid(child, &status, 0));
    say("child %#x", status);
    FILE *stream = _IO_fdopen(fd, "r+");
    fputs("by the FILE!", stream);
    fflush(stream);
    say("%s", fgets(line, sizeof line, stream));
    fclose(stream);
}

int main(void)
{
    listener = listen_at("127.0.0.1");
    port = port_of(listener);
    return run_pair(server, client);
}
