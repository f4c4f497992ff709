/* The side that is killed: asks in small messages and tells stdout of each answer.
 *
 * victim connect PORT | victim listen (prints "port N" first)
 * One byte on stdout per message sent or received. */
#include "trial.h"

int main(int argc, char **argv)
{
    char out[512], in[512];
    int fd;
    MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
    if (argc == 3) {
        fd = connect_at("127.0.0.1", atoi(argv[2]));
    } else {
        int listener = listen_at("127.0.0.1");
        printf("port %d\n", port_of(listener));
        fflush(stdout);
        fd = accept_at(listener);
    }
    memset(out, 'v', sizeof out);
    for (uint32_t turn = 0;; turn++) {
        size_t size = 1 + turn * 37 % sizeof out;
        send_all(fd, out, size);
        MUST(write(STDOUT_FILENO, "s", 1));
        recv_all(fd, in, size);
        MUST(write(STDOUT_FILENO, "r", 1));
    }
}
