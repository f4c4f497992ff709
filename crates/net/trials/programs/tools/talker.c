/* A client whose names can be known before it talks.
 *
 * talker SOURCE TARGET PORT    binds SOURCE, connects, prints "port N" (its own)
 * stdin "mark": shows the other end the mark of Saiga's processes, without being one;
 * "again": opens a second connection, from another port, which what follows is about;
 * "talk N": N round trips of 64 bytes, prints "moved" or "kernel" by what TCP
 * itself carried in the last 16 of them. */
#include "trial.h"

static int open_connection(const struct place *source, const struct place *target)
{
    int fd = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
    MUST(bind(fd, (struct sockaddr *)&source->addr, source->length));
    MUST(connect(fd, (struct sockaddr *)&target->addr, target->length));
    printf("port %d\n", port_of(fd));
    fflush(stdout);
    return fd;
}

int main(int argc, char **argv)
{
    char line[64];
    int count;
    if (argc != 4)
        return 2;
    struct place source = place_of(argv[1], 0), target = place_of(argv[2], atoi(argv[3]));
    MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
    int fd = open_connection(&source, &target);
    while (fgets(line, sizeof line, stdin) != NULL) {
        int off = 0;
        if (strcmp(line, "mark\n") == 0) {
            MUST(setsockopt(fd, IPPROTO_IP, IP_MULTICAST_LOOP, &off, sizeof off));
            continue;
        }
        if (strcmp(line, "again\n") == 0) {
            fd = open_connection(&source, &target);
            continue;
        }
        if (sscanf(line, "talk %d", &count) != 1)
            break;
        long long before = 0;
        for (int i = 0; i < count; i++) {
            char out[64], in[64];
            memset(out, 'a' + i % 26, sizeof out);
            if (i == count - 16)
                before = witness_received(fd);
            send_all(fd, out, sizeof out);
            recv_all(fd, in, sizeof in);
            if (memcmp(out, in, sizeof out) != 0)
                give_up("wrong echo");
        }
        printf("%s\n", witness_received(fd) - before < 8 * 64 ? "moved" : "kernel");
        fflush(stdout);
    }
    return 0;
}
