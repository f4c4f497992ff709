/* A process of another user in the way of a rendezvous.
 *
 * squatter sit NAME     listens on the abstract NAME, prints "sitting", then
 *                       "visitors V bytes B descriptors D" when stdin ends
 * squatter visit NAME   connects to NAME until it succeeds, prints "visiting", and
 *                       the same line (V is 1) when its stdin ends
 * It becomes user 54321 first, so the test must run as root. */
#include "trial.h"
#include <grp.h>
#include <stddef.h>

static int bytes, descriptors, visitors;

/* Everything that the other side sends until now or until it hangs up. */
static void drain(int fd)
{
    char text[4096], control[256];
    struct iovec part = {text, sizeof text};
    for (;;) {
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT);
        if (got <= 0)
            return;
        bytes += (int)got;
        descriptors += CMSG_FIRSTHDR(&message) != NULL;
    }
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    size_t length = strlen(argv[2]);
    memcpy(name.sun_path + 1, argv[2], length);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
    MUST(setgroups(0, NULL));
    MUST(setresgid(54321, 54321, 54321));
    MUST(setresuid(54321, 54321, 54321));
    MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
    int fd = (int)MUST(socket(AF_UNIX, SOCK_SEQPACKET, 0));
    struct pollfd both[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
    if (strcmp(argv[1], "sit") == 0) {
        MUST(bind(fd, (struct sockaddr *)&name, size));
        MUST(listen(fd, 16));
        printf("sitting\n");
    } else {
        while (connect(fd, (struct sockaddr *)&name, size) < 0)
            poll(NULL, 0, 1);
        visitors = 1;
        (void)!write(fd, "let me in", 9);
        printf("visiting\n");
    }
    fflush(stdout);
    for (;;) {
        MUST(poll(both, 2, -1));
        if (both[1].revents != 0) {
            if (visitors == 1 && argv[1][0] == 'v') {
                drain(fd);
                if (both[1].revents & POLLHUP)
                    both[1].fd = -1;
            } else {
                int visitor = (int)MUST(accept(fd, NULL, NULL));
                visitors++;
                struct pollfd entry = {.fd = visitor, .events = POLLIN};
                poll(&entry, 1, 1000); /* what it has to say comes at once, or never */
                drain(visitor);
                close(visitor);
            }
        }
        if (both[0].revents != 0)
            break;
    }
    printf("visitors %d bytes %d descriptors %d\n", visitors, bytes, descriptors);
    return 0;
}
