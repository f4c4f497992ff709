/* A thread that jumps out of a blocking call. */
#ifndef JUMPS_H
#define JUMPS_H
#include "trial.h"
#include <setjmp.h>

static sigjmp_buf jump_target;
static pthread_t jumper;
static pid_t jumper_tid;

SHARED void jump(int number)
{
    (void)number;
    siglongjmp(jump_target, 1);
}

SHARED void *signal_jumper(void *unused)
{
    await_asleep(jumper_tid);
    MUST(-pthread_kill(jumper, SIGUSR1));
    return unused;
}

/* How many descriptors this process has, and a few more. */
SHARED int descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

/* Runs `block` until the handler of a signal jumps out of it: one comes when this thread sleeps. */
SHARED void jump_out_of(void (*block)(void))
{
    pthread_t helper;
    signal(SIGUSR1, jump);
    jumper_tid = gettid();
    jumper = pthread_self();
    if (sigsetjmp(jump_target, 1) == 0) {
        MUST(-pthread_create(&helper, NULL, signal_jumper, NULL));
        block();
    }
    MUST(-pthread_join(helper, NULL));
}
#endif
