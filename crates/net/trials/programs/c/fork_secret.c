// about: a forked child without rights finds no byte of a later connection in its memory
// upgraded: yes
#include "trial.h"

#define SECRET 64
#define CHUNK 65536
#define MOST (32ul << 20) /* of a mapping that is mostly holes */

/* The secret of a side, byte by byte: no buffer has it before it is sent. */
static unsigned char secret(enum role role, size_t at)
{
    return pattern(500 + role, at);
}

/* How often the secrets stand in what this process can read. */
static int search(void)
{
    static unsigned char chunk[CHUNK + SECRET];
    char line[512];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    if (maps == NULL)
        give_up("/proc/self/maps");
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long from, to;
        char access[5];
        if (sscanf(line, "%lx-%lx %4s", &from, &to, access) != 3)
            continue;
        /* A shared mapping is searched in spite of its protection. */
        if (access[0] != 'r' && access[3] == 's') {
            to = to - from > MOST ? from + MOST : to;
            MUST(mprotect((void *)from, to - from, PROT_READ));
        } else if (access[0] != 'r') {
            continue;
        }
        for (unsigned long at = from; at < to; at += CHUNK) {
            size_t length = to - at < sizeof chunk ? to - at : sizeof chunk;
            struct iovec own = {chunk, length}, there = {(void *)at, length};
            ssize_t got = process_vm_readv(getpid(), &own, 1, &there, 1, 0);
            for (ssize_t i = 0; i + SECRET <= got; i++)
                for (enum role role = SERVER; role <= CLIENT; role++) {
                    size_t same = 0;
                    while (same < SECRET && chunk[i + (ssize_t)same] == secret(role, same))
                        same++;
                    found += same == SECRET;
                }
        }
    }
    fclose(maps);
    return found;
}

/* A child that waits for a byte, searches, and answers. */
static pid_t start_child(int fd, int pipes[2])
{
    int ask[2], answer[2];
    MUST(pipe(ask));
    MUST(pipe(answer));
    pid_t child = (pid_t)MUST(fork());
    if (child != 0) {
        close(ask[0]);
        close(answer[1]);
        pipes[0] = answer[0];
        pipes[1] = ask[1];
        return child;
    }
    MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
    MUST(close(fd));
    for (int each = 3; each < 256; each++)
        if (each != ask[0] && each != answer[1])
            close(each);
    if (geteuid() == 0)
        MUST(setuid(65534));
    char byte = 'r';
    MUST(write(answer[1], &byte, 1));
    MUST(read(ask[0], &byte, 1));
    byte = search() > 0 ? 'f' : 'n';
    MUST(write(answer[1], &byte, 1));
    _exit(0);
}

static enum role forks; /* the side that has a child */

static void both(int fd, int later, enum role role, pid_t child, int pipes[2])
{
    unsigned char bytes[SECRET], byte = 's';
    warm_up(later, role);
    for (size_t i = 0; i < SECRET; i++)
        bytes[i] = secret(role, i);
    send_all(later, bytes, sizeof bytes);
    meet(); /* both secrets are on their way, and neither is read */
    if (role == forks) {
        MUST(write(pipes[1], &byte, 1));
        MUST(read(pipes[0], &byte, 1));
        say("the child %s", byte == 'n' ? "finds nothing" : "reads a connection of its parent's");
        MUST(waitpid(child, NULL, 0));
    }
    meet();
    recv_all(later, bytes, sizeof bytes);
    say("%s", bytes[0] == secret(!role, 0) ? "the secret has come" : "wrong bytes");
    prove(fd, role); /* the older connection goes on, too */
    prove(later, role);
}

static pid_t child_of(int fd, enum role role, int pipes[2])
{
    char byte;
    pid_t child = -1;
    if (role == forks) {
        child = start_child(fd, pipes);
        MUST(read(pipes[0], &byte, 1));
    }
    meet();
    return child;
}

static void server(int fd)
{
    int pipes[2];
    pid_t child = child_of(fd, SERVER, pipes);
    int listener = listen_at("127.0.0.2"), port = port_of(listener);
    send_all(fd, &port, sizeof port);
    both(fd, accept_at(listener), SERVER, child, pipes);
}

static void client(int fd)
{
    int pipes[2], port;
    pid_t child = child_of(fd, CLIENT, pipes);
    recv_all(fd, &port, sizeof port);
    both(fd, connect_at("127.0.0.2", port), CLIENT, child, pipes);
}

int main(void)
{
    /* The server has the higher address in both connections, so it makes the memory of both. */
    int failed = 0;
    for (forks = SERVER; forks <= CLIENT && !failed; forks++)
        failed = run_pair_at("127.0.0.2", "127.0.0.2", false, server, client);
    return failed;
}
