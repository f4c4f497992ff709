// about: fstat, readlink and open of /proc/self/fd, isatty, lseek, fsync, flock, mmap, SO_COOKIE and SO_PEERCRED of an upgraded connection
// upgraded: yes
#include "trial.h"
#include <sys/file.h>

static void server(int fd)
{
    meet();
    round_trips(fd, SERVER, 20, 64);
    char byte;
    say("end %zd", recv(fd, &byte, 1, 0));
}

static void client(int fd)
{
    char path[64], before[64] = {0}, after[64] = {0};
    struct stat first, second;
    uint64_t cookie = 0, again = 1;
    socklen_t length = sizeof cookie;
    struct ucred who;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    MUST(fstat(fd, &first));
    MUST(readlink(path, before, sizeof before - 1));
    MUST(getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &length));
    say("socket %d %d", S_ISSOCK(first.st_mode), strncmp(before, "socket:[", 8) == 0);
    SAY(open(path, O_RDWR));
    SAY(isatty(fd));
    SAY(lseek(fd, 0, SEEK_CUR));
    SAY(fsync(fd));
    SAY(ftruncate(fd, 0));
    SAY(flock(fd, LOCK_EX | LOCK_NB));
    SAY(pread(fd, path, 1, 0));
    SAY(pwrite(fd, path, 1, 0));
    int refused = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED;
    say("mmap %d %s", refused, strerrorname_np(errno));
    length = sizeof who;
    SAY(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length));
    say("pid %d", who.pid);
    SAY(fcntl(fd, F_GETPIPE_SZ));
    SAY(fcntl(fd, F_GETFL));
    SAY(fcntl(fd, F_GETFD));
    SAY(fcntl(fd, F_GETOWN));
    meet();
    round_trips(fd, CLIENT, 20, 64);
    length = sizeof again;
    MUST(fstat(fd, &second));
    MUST(readlink(path, after, sizeof after - 1));
    MUST(getsockopt(fd, SOL_SOCKET, SO_COOKIE, &again, &length));
    say("the same %d %d %d", first.st_ino == second.st_ino, strcmp(before, after), cookie == again);
    MUST(close(fd));
    SAY(fstat(fd, &second));
}

int main(void)
{
    return run_pair(server, client);
}
