// about: what was sent right before _exit, exit, abort, SIGKILL, a fatal signal or exec of another program arrives
// upgraded: yes
#include "trial.h"
#include <sys/resource.h>

enum { WAYS = 6 };

static void leave(int way)
{
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    switch (way) {
    case 0:
        _exit(3);
    case 1:
        exit(4);
    case 2:
        abort();
    case 3:
        raise(SIGKILL);
        break;
    case 4:
        raise(SIGTERM);
        break;
    default:
        execl("/bin/true", "true", NULL);
    }
}

static void server(int first)
{
    static unsigned char block[4096];
    int listener = listen_at("127.0.0.1"), port = port_of(listener);
    MUST(write(trial_meet[1], &port, sizeof port));
    for (int way = 0; way < WAYS; way++) {
        int fd = accept_at(listener);
        warm_up(fd, SERVER);
        meet(); /* the client's process has ended */
        long long total = 0, wrong = 0;
        ssize_t got;
        while ((got = recv(fd, block, sizeof block, 0)) > 0)
            for (ssize_t i = 0; i < got; i++, total++)
                wrong += block[i] != pattern(9, (uint64_t)total);
        say("way %d: %lld bytes, wrong %lld, end %zd", way, total, wrong, got);
        MUST(close(fd));
    }
    MUST(close(first));
}

static void client(int first)
{
    static unsigned char block[5000];
    int port, status;
    MUST(read(trial_meet[0], &port, sizeof port));
    for (int way = 0; way < WAYS; way++) {
        pid_t child = (pid_t)MUST(fork());
        if (child == 0) {
            int fd = connect_at("127.0.0.1", port);
            warm_up(fd, CLIENT);
            for (size_t i = 0; i < sizeof block; i++)
                block[i] = pattern(9, i);
            send_all(fd, block, 1000);
            send_all(fd, block + 1000, 4000);
            leave(way);
        }
        MUST(waitpid(child, &status, 0));
        say("way %d ended %#x", way, status & ~0x80);
        meet();
    }
    char byte;
    say("end %zd", recv(first, &byte, 1, 0));
}

int main(void)
{
    return run_pair(server, client);
}
