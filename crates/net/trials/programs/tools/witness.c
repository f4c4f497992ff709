/* For programs that load an object: witness_received() for Python, through ctypes, and a poll(2)
 * that RTLD_DEEPBIND binds to libc, past what is preloaded. */
#include "witness.h"
#include <poll.h>

long long trial_received(int fd)
{
    return witness_received(fd);
}

int trial_poll(struct pollfd *fds, nfds_t count, int timeout)
{
    return poll(fds, count, timeout);
}
