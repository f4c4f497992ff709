/* witness_received() for Python programs, through ctypes. */
#include "witness.h"

long long trial_received(int fd)
{
    return witness_received(fd);
}
