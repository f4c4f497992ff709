/* Asks the kernel, past every interposed function, how many bytes TCP itself
 * has carried on a socket: the proof that an upgraded connection has left it. */
#ifndef WITNESS_H
#define WITNESS_H
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#ifndef SOL_TCP
#define SOL_TCP 6
#endif

static inline long witness_call(long nr, long a, long b, long c, long d, long e)
{
    long rc;
#if defined(__x86_64__)
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    __asm__ volatile("syscall" : "=a"(rc) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    rc = x0;
#else
#error "witness_call: add this architecture"
#endif
    return rc;
}

/* tcpi_bytes_received (struct tcp_info of <linux/tcp.h>, offset 128), or -errno. */
static inline long long witness_received(int fd)
{
    unsigned char info[256];
    unsigned int length = sizeof info;
    uint64_t received;
    memset(info, 0, sizeof info);
    long rc = witness_call(SYS_getsockopt, fd, SOL_TCP, 11 /* TCP_INFO */, (long)info, (long)&length);
    if (rc < 0)
        return rc;
    memcpy(&received, info + 128, sizeof received);
    return (long long)received;
}
#endif
