// about: an object that waits was loaded with RTLD_DEEPBIND, or into another namespace, before a connection was made
// upgraded: no
#include "raw_waits.h"

/* Also with the object loaded, all waits of one end go through libc. */
static void trips(int fd, enum role role, int pair)
{
    if (role == SERVER && pair == 0)
        bind_deeply();
    if (role == CLIENT && pair == 1 && dlmopen(LM_ID_NEWLM, getenv("TRIAL_WITNESS"), RTLD_NOW) == NULL)
        give_up("%s", dlerror());
    raw_hurried = true; /* the descriptor goes on to block */
    trips_in_one_way(fd, role, pair, pair == 0 ? LIBC_POLL : LIBC_EPOLL);
}

int main(void)
{
    return run_pairs(trips, 2);
}
