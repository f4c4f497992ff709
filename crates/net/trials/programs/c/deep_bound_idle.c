// about: objects without waits that are loaded with RTLD_DEEPBIND, or not found, keep no connection on TCP
// upgraded: yes
#include "raw_waits.h"

static void trips(int fd, enum role role, int pair)
{
    say("missing: %d", dlopen("/missing.so", RTLD_NOW | RTLD_DEEPBIND) == NULL);
    if (dlopen("libm.so.6", RTLD_LAZY | RTLD_DEEPBIND) == NULL)
        give_up("%s", dlerror());
    raw_hurried = true;
    trips_in_one_way(fd, role, pair, LIBC_POLL);
}

int main(void)
{
    return run_pairs(trips, 1);
}
