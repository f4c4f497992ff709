// about: a filter that comes over exec and refuses all that a plain network program does not need
// upgraded: any, for who needs the refused calls follows from the ports
#include "trial.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

/* What is refused here a library has no need of, either: it goes without. */
static void refuse(const int *refused, int count)
{
    struct sock_filter rules[32];
    rules[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < count; i++)
        rules[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)refused[i], (unsigned char)(count - i), 0);
    rules[count + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    rules[count + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    struct sock_fprog program = {.len = (unsigned short)(count + 3), .filter = rules};
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static void server(int first)
{
    int listener = listen_at("127.0.0.1"), port = port_of(listener);
    char text[8] = {0};
    MUST(write(trial_meet[1], &port, sizeof port));
    for (int i = 0; i < 3; i++) {
        int fd = accept_at(listener);
        round_trips(fd, SERVER, 300, 64);
        recv_all(fd, text, 4);
        say("%s, end %zd", text, recv(fd, text, 1, 0));
        MUST(close(fd));
    }
    MUST(close(first));
}

static int second_life(int port)
{
    struct pollfd entry = {.events = POLLIN};
    entry.fd = connect_at("127.0.0.1", port);
    round_trips(entry.fd, CLIENT, 300, 64);
    int idle = poll(&entry, 1, SHORT_MS);
    send_all(entry.fd, "done", 4);
    MUST(close(entry.fd));
    return idle;
}

static void client(int first)
{
    static const int memory[] = {SYS_memfd_create, SYS_membarrier, SYS_sched_yield};
    static const int talk[] = {SYS_socketpair, SYS_sendmsg, SYS_recvmsg, SYS_getsockopt};
    static const int waiting[] = {SYS_eventfd2, SYS_ppoll, SYS_epoll_create1, SYS_ftruncate, SYS_getrandom};
    static const struct {
        const int *refused;
        int count;
    } filters[] = {{memory, 3}, {talk, 4}, {waiting, 5}};
    char number[16], byte;
    int port, status;
    MUST(read(trial_meet[0], &port, sizeof port));
    snprintf(number, sizeof number, "%d", port);
    for (int i = 0; i < 3; i++) {
        pid_t child = (pid_t)MUST(fork());
        if (child == 0) {
            refuse(filters[i].refused, filters[i].count);
            execl("/proc/self/exe", "sandbox_inherited", number, NULL);
            give_up("exec");
        }
        MUST(waitpid(child, &status, 0));
        say("ended %d", status);
    }
    say("end %zd", recv(first, &byte, 1, 0));
}

int main(int argc, char **argv)
{
    return argc == 2 ? second_life(atoi(argv[1])) : run_pair(server, client);
}
