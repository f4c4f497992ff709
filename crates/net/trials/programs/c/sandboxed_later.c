// about: prctl and seccomp: a filter set up when the connection is upgraded already
// upgraded: yes
#include "trial.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

#ifndef SYS_poll /* poll() of arm64 calls ppoll */
#define SYS_poll SYS_ppoll
#endif

/* Only what a plain network program needs; anything else kills the process. */
static void sandbox(void)
{
    static const int allowed[] = {SYS_read, SYS_write, SYS_sendto, SYS_recvfrom, SYS_poll, SYS_close,
                                  SYS_exit_group, SYS_futex, SYS_rt_sigreturn};
    enum { COUNT = sizeof allowed / sizeof *allowed };
    struct sock_filter rules[COUNT + 3];
    rules[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < COUNT; i++)
        rules[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], COUNT - i, 0);
    rules[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    rules[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = COUNT + 3, .filter = rules};
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static void server(int fd)
{
    warm_up(fd, SERVER);
    round_trips(fd, SERVER, 200, 64);
    char byte;
    say("end %zd", recv(fd, &byte, 1, 0));
}

static void client(int fd)
{
    say("dumpable %d", prctl(PR_GET_DUMPABLE));
    say("name %d", prctl(PR_SET_NAME, "trial"));
    warm_up(fd, CLIENT);
    sandbox();
    round_trips(fd, CLIENT, 200, 64);
    say("still here");
    close(fd);
    _exit(0);
}

int main(void)
{
    return run_pair_at("127.0.0.1", "127.0.0.1", true, server, client);
}
