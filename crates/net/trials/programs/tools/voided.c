/* An echo server that loses memory of its own channels: access to it raises SIGBUS, as access to a
 * hole does when the system refuses a page for it.
 *
 * voided [caught]    prints "port N"; with "caught" it has a handler for SIGBUS
 * stdin "void FROM": the accessible part of each segment is gone from this offset on; prints
 * "segments N". "touch": raises SIGBUS elsewhere; "signal": is sent SIGBUS; both print what the
 * handler has seen. */
#include "trial.h"
#include <setjmp.h>

static int empty;
static char *own;
static sigjmp_buf back;
static char seen[64];

static void on_bus_error(int signal, siginfo_t *info, void *context)
{
    sigset_t mask;
    bool fault = info->si_code > 0;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    bool same = signal == SIGBUS && context != NULL &&
                (fault ? info->si_addr == own : info->si_pid == getpid());
    snprintf(seen, sizeof seen, "%s %d %d %d", fault ? "fault" : "signal", same,
             sigismember(&mask, SIGBUS), sigismember(&mask, SIGUSR1));
    if (fault)
        siglongjmp(back, 1);
}

static int void_segments(unsigned long from)
{
    char line[512];
    unsigned long begin, end, offset;
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    if (maps == NULL)
        give_up("maps");
    while (fgets(line, sizeof line, maps) != NULL)
        if (strstr(line, "memfd:saiga-segment") != NULL &&
            sscanf(line, "%lx-%lx rw-s %lx", &begin, &end, &offset) == 3 && offset == 0) {
            if (mmap((char *)begin + from, end - begin - from, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_FIXED, empty, 0) == MAP_FAILED)
                give_up("mmap");
            count++;
        }
    fclose(maps);
    return count;
}

static void follow_command(void)
{
    char line[64];
    unsigned long from;
    ssize_t got = MUST(read(STDIN_FILENO, line, sizeof line - 1));
    line[got] = 0;
    if (sscanf(line, "void %lu", &from) == 1)
        printf("segments %d\n", void_segments(from));
    else if (strcmp(line, "touch\n") == 0) {
        if (sigsetjmp(back, 1) == 0)
            *(volatile char *)own = 1;
        printf("%s\n", seen);
    } else if (strcmp(line, "signal\n") == 0) {
        MUST(kill(getpid(), SIGBUS));
        printf("%s\n", seen);
    } else
        exit(0);
    fflush(stdout);
}

/* False when the connection is over. */
static bool echo(int fd)
{
    char block[4096];
    ssize_t got = recv(fd, block, sizeof block, 0);
    return got > 0 && send(fd, block, (size_t)got, MSG_NOSIGNAL) == got;
}

int main(int argc, char **argv)
{
    struct pollfd all[64] = {{.fd = STDIN_FILENO, .events = POLLIN}};
    nfds_t used = 2;
    MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
    if (argc > 1 && strcmp(argv[1], "caught") == 0) {
        struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
        sigaddset(&action.sa_mask, SIGUSR1);
        MUST(sigaction(SIGBUS, &action, NULL));
    }
    empty = (int)MUST(memfd_create("empty", MFD_CLOEXEC));
    own = mmap(NULL, (size_t)getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, empty, 0);
    all[1] = (struct pollfd){.fd = listen_at("0.0.0.0"), .events = POLLIN};
    printf("port %d\n", port_of(all[1].fd));
    fflush(stdout);
    for (;;) {
        MUST(poll(all, used, -1));
        for (nfds_t i = used - 1; i > 1; i--)
            if (all[i].revents != 0 && !echo(all[i].fd)) {
                MUST(close(all[i].fd));
                all[i] = all[--used];
            }
        if (all[1].revents != 0 && used < 64)
            all[used++] =
                (struct pollfd){.fd = (int)MUST(accept(all[1].fd, NULL, NULL)), .events = POLLIN};
        if (all[0].revents != 0)
            follow_command();
    }
}
