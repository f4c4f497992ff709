// about: RLIMIT_FSIZE of 1 MiB before the first byte: no SIGXFSZ, and the connection stays on TCP
// upgraded: no
#include "trial.h"
#include <sys/resource.h>

static void limit_files(void)
{
    struct rlimit limit;
    MUST(getrlimit(RLIMIT_FSIZE, &limit));
    limit.rlim_cur = 1 << 20;
    SAY(setrlimit(RLIMIT_FSIZE, &limit));
}

static void server(int fd)
{
    limit_files();
    warm_up(fd, SERVER);
}

static void client(int fd)
{
    limit_files();
    warm_up(fd, CLIENT);
}

int main(void)
{
    return run_pair_at("127.0.0.1", "127.0.0.1", true, server, client);
}
