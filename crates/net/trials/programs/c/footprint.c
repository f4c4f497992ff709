// about: what one channel adds to VmData, to a core dump, and to what mlockall makes resident
// upgraded: yes
#include "trial.h"

/* A field of /proc/self/status, in KiB. */
static long status_of(const char *field)
{
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, field, strlen(field)) == 0)
            sscanf(line + strlen(field), ": %ld", &kib);
    if (file != NULL)
        fclose(file);
    return kib;
}

/* Bytes that a core dump has for our mappings, in KiB, as vma_dump_size() of the kernel counts
 * them with its usual filter: shared anonymous memory, memfds, and written private memory. */
static long core_kib(void)
{
    char line[512];
    long all = 0, size = 0, written = 0;
    bool memory_file = false;
    FILE *file = fopen("/proc/self/smaps", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx", &from, &to) == 2) {
            memory_file =
                strstr(line, "/memfd:") != NULL || strstr(line, "/dev/zero (deleted)") != NULL;
            size = (long)(to - from) >> 10;
        }
        sscanf(line, "Anonymous: %ld", &written);
        bool dumped = strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " dd") == NULL;
        if (dumped && (memory_file || written > 0))
            all += size;
    }
    if (file != NULL)
        fclose(file);
    return all;
}

static void at_most(const char *what, long kib, long most)
{
    if (getenv("TRIAL_VERBOSE") != NULL)
        fprintf(stderr, "%s: %s %ld KiB\n", trial_side, what, kib);
    say("%s: %s", what, kib <= most ? "as little as it should be" : "too much");
}

static void measure(int fd, enum role role, const char *when)
{
    say("%s", when);
    at_most("VmData", status_of("VmData"), 4 << 10);
    at_most("core dump", core_kib(), 2 << 10);
    at_most("VmRSS", status_of("VmRSS"), 21 << 10); /* with two rings of 4 MiB, not a third */
    round_trips(fd, role, 20, 64);
    meet();
}

static void both(int fd, enum role role)
{
    measure(fd, role, "one channel");
    mlockall(MCL_CURRENT | MCL_FUTURE); /* without the right to, nothing is resident */
    measure(fd, role, "mlockall");
    prove(fd, role);
}

static void server(int fd)
{
    both(fd, SERVER);
}

static void client(int fd)
{
    both(fd, CLIENT);
}

/* mlockall before the first connection. */
static void locked_server(int fd)
{
    mlockall(MCL_CURRENT | MCL_FUTURE);
    warm_up(fd, SERVER);
    measure(fd, SERVER, "a channel after mlockall");
}

static void locked_client(int fd)
{
    mlockall(MCL_CURRENT | MCL_FUTURE);
    warm_up(fd, CLIENT);
    measure(fd, CLIENT, "a channel after mlockall");
}

int main(void)
{
    int failed = run_pair(server, client);
    if (failed)
        return failed;
    return run_pair_at("127.0.0.1", "127.0.0.1", true, locked_server, locked_client);
}
