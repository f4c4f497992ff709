// about: F_DUPFD, F_DUPFD_CLOEXEC, dup3 flags, FIOCLEX, FIONCLEX, FIONBIO and F_SETFL: lowest free numbers, flags per number and flags per connection
// upgraded: yes
#include "trial.h"

static void flags(const char *when, int fd)
{
    say("%s: descriptor %d, file %#x", when, fcntl(fd, F_GETFD), (unsigned)fcntl(fd, F_GETFL));
}

static void server(int fd)
{
    meet();
    round_trips(fd, SERVER, 20, 64);
    char byte;
    say("end %zd", recv(fd, &byte, 1, 0));
}

static void client(int fd)
{
    int on = 1, off = 0;
    flags("at first", fd);
    SAY(fcntl(fd, F_DUPFD, 100));
    SAY(fcntl(fd, F_DUPFD, 100));
    SAY(fcntl(fd, F_DUPFD_CLOEXEC, 100));
    SAY(close(101));
    SAY(fcntl(fd, F_DUPFD_CLOEXEC, 99));
    SAY(fcntl(fd, F_DUPFD_CLOEXEC, 99));
    flags("F_DUPFD", 100);
    flags("F_DUPFD_CLOEXEC", 102);
    SAY(dup3(fd, 110, O_CLOEXEC));
    SAY(dup3(fd, 111, 0));
    SAY(dup3(fd, 112, O_NONBLOCK));
    SAY(dup3(fd, 110, 0)); /* over itself, so to say: no close-on-exec now */
    flags("dup3 again", 110);
    SAY(dup2(102, 103));
    flags("dup2 of a close-on-exec one", 103);
    SAY(ioctl(fd, FIOCLEX));
    flags("FIOCLEX", fd);
    flags("the other number", 100);
    SAY(ioctl(fd, FIONCLEX));
    flags("FIONCLEX", fd);
    SAY(ioctl(100, FIONBIO, &on));
    flags("FIONBIO on another number", fd);
    SAY(recv(fd, &(char){0}, 1, 0));
    SAY(fcntl(fd, F_SETFL, O_RDWR | O_APPEND));
    flags("O_APPEND, blocking", 111);
    SAY(fcntl(fd, F_SETFL, O_RDONLY));
    flags("O_RDONLY is not taken", fd);
    SAY(fcntl(fd, F_SETFL, O_NONBLOCK | O_DIRECT));
    flags("O_DIRECT", fd);
    SAY(ioctl(fd, FIONBIO, &off));
    SAY(fcntl(fd, F_DUPFD, 1 << 30));
    SAY(fcntl(fd, F_SETFD, 0xff));
    flags("any odd number sets it", fd);
    for (int i = 99; i < 112; i++)
        if (i != 111)
            (void)!close(i);
    SAY(close(fd));
    meet();
    round_trips(111, CLIENT, 20, 64);
}

int main(void)
{
    return run_pair(server, client);
}
