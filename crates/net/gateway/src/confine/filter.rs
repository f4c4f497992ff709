//! The system calls of a gateway that serves (`man 2 seccomp`).
//!
//! The list has what the workers, anchors, netlink, the control socket, metrics and the preloaded
//! library call after the start; new threads are allowed, new processes and programs are not. Every
//! other call fails with ENOSYS, as on a kernel without it. So libc falls back to an older call
//! (clone3). A filter that kills could end all connections after an update of libc. An intruder
//! gains nothing from attempts, since each one fails.
//!
//! The filter is written here, not by a crate: it is a list of comparisons, and its installation
//! must bypass libc. The library would see a call of libc as a sandbox of the application, and put
//! all connections back on TCP.
#![expect(unsafe_code, reason = "seccomp(2) reads a program by pointer")]

use std::io;

use libc::{c_int, c_long, sock_filter};
use syscalls::{Sysno, syscall};

use super::Uses;

/// Calls that are allowed with all arguments.
const ALWAYS: &[c_long] = &[
    // Bytes: devices, anchors, pipes, files.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_close,
    libc::SYS_shutdown,
    libc::SYS_fcntl,
    // Sockets.
    libc::SYS_bind,
    libc::SYS_connect,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    // Waiting.
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_ppoll,
    libc::SYS_eventfd2,
    libc::SYS_pipe2,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_restart_syscall,
    // Clocks, where the vDSO does not have them.
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    // Memory, without making it executable: mmap and mprotect are below.
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_munlock,
    libc::SYS_brk,
    libc::SYS_mbind,
    libc::SYS_set_mempolicy,
    libc::SYS_membarrier,
    libc::SYS_memfd_create,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    // Files: /proc for the library, what a capture writes, the socket that is removed at the end.
    libc::SYS_openat,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_lseek,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_fsync,
    libc::SYS_unlinkat,
    // Threads, and their end.
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_sigaltstack,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_getcpu,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // Signals.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    // What a process is told of itself and of the host.
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getrusage,
    libc::SYS_getrandom,
    libc::SYS_sysinfo,
    libc::SYS_uname,
];

/// Older forms of the above, which only x86-64 has.
#[cfg(target_arch = "x86_64")]
const OLDER: &[c_long] = &[
    libc::SYS_poll,
    libc::SYS_epoll_wait,
    libc::SYS_readlink,
    libc::SYS_unlink,
    libc::SYS_getrlimit,
    libc::SYS_time,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[c_long] = &[];

/// The timers by which the queues of DPDK are looked at, and those of its thread, which panics if
/// it cannot renew its set of descriptors.
#[cfg(target_arch = "x86_64")]
const DPDK: &[c_long] = &[libc::SYS_timerfd_settime, libc::SYS_epoll_create];
#[cfg(not(target_arch = "x86_64"))]
const DPDK: &[c_long] = &[libc::SYS_timerfd_settime];

/// The timer by which a memif device looks again for its peer, and a look at the file system of the
/// memory that a peer brings.
const MEMIF: &[c_long] = &[libc::SYS_timerfd_settime, libc::SYS_fstatfs];

/// AUDIT_ARCH_X86_64 and AUDIT_ARCH_AARCH64 of linux/audit.h: other numbers have other meanings.
const ARCHITECTURE: u32 = if cfg!(target_arch = "x86_64") {
    0xc000_003e
} else {
    0xc000_00b7
};

/// Flags of clone(2) that make namespaces.
const NAMESPACES: c_int = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET;

/// Places in `struct seccomp_data`; the lower half of an argument comes first.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;

/// A call that is allowed if some bits of the lower half of an argument have a value.
#[derive(Debug, Clone, Copy)]
struct Checked {
    call: c_long,
    argument: u32,
    mask: u32,
    value: u32,
}

impl Checked {
    /// The argument is an int with this value.
    const fn int(call: c_long, argument: u32, value: u32) -> Self {
        Self {
            call,
            argument,
            mask: u32::MAX,
            value,
        }
    }

    /// None of the bits is set.
    const fn none(call: c_long, argument: u32, mask: u32) -> Self {
        Self {
            call,
            argument,
            mask,
            value: 0,
        }
    }
}

/// Installs the filter for this thread and those that it starts.
pub(super) fn enter(uses: Uses) -> io::Result<()> {
    let mut code = program(std::process::id(), uses);
    let filter = libc::sock_fprog {
        len: u16::try_from(code.len()).map_err(io::Error::other)?,
        filter: code.as_mut_ptr(),
    };
    let at = &raw const filter;
    // SAFETY: the kernel reads the structure and the instructions, which outlive the call.
    let done = unsafe { syscall!(Sysno::seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, at) };
    done.map_err(|error| io::Error::from_raw_os_error(error.into_raw()))?;
    Ok(())
}

/// The calls with a condition.
fn checked(pid: u32, uses: Uses) -> Vec<Checked> {
    let unsigned = |value: c_int| value.cast_unsigned();
    let mut checked = Vec::new();
    // No packet sockets, and no other family that the gateway does not use.
    for family in [
        libc::AF_UNIX,
        libc::AF_INET,
        libc::AF_INET6,
        libc::AF_NETLINK,
    ] {
        checked.push(Checked::int(libc::SYS_socket, 0, unsigned(family)));
    }
    let unix = unsigned(libc::AF_UNIX);
    checked.push(Checked::int(libc::SYS_socketpair, 0, unix));
    checked.push(Checked {
        call: libc::SYS_clone,
        argument: 0,
        mask: unsigned(libc::CLONE_THREAD | NAMESPACES),
        value: unsigned(libc::CLONE_THREAD),
    });
    let name = unsigned(libc::PR_SET_NAME);
    checked.push(Checked::int(libc::SYS_prctl, 0, name));
    let executable = unsigned(libc::PROT_EXEC);
    checked.push(Checked::none(libc::SYS_mmap, 2, executable));
    checked.push(Checked::none(libc::SYS_mprotect, 2, executable));
    // Not TIOCSTI, which types into the terminal of the user who has started the gateway.
    for request in [
        libc::FIONBIO,
        libc::FIOCLEX,
        libc::FIONREAD,
        libc::TIOCOUTQ,
        libc::TCGETS,
        saiga_anchor::urgent::SIOCATMARK,
    ] {
        let request = u32::try_from(request).unwrap_or(0);
        checked.push(Checked::int(libc::SYS_ioctl, 1, request));
    }
    // Whether a process lives; signals to this process alone; limits of this process alone.
    checked.push(Checked::int(libc::SYS_kill, 1, 0));
    checked.push(Checked::int(libc::SYS_tgkill, 0, pid));
    checked.push(Checked::int(libc::SYS_rt_tgsigqueueinfo, 0, pid));
    checked.push(Checked::int(libc::SYS_prlimit64, 0, 0));
    if uses.has_bpf {
        // BPF_MAP_UPDATE_ELEM and BPF_MAP_DELETE_ELEM of linux/bpf.h: hosts and ports that are
        // served. Programs and maps cannot be made.
        checked.push(Checked::int(libc::SYS_bpf, 0, 2));
        checked.push(Checked::int(libc::SYS_bpf, 0, 3));
    }
    checked
}

/// The filter. Since Linux 5.11, the kernel does not run it for calls without a condition.
fn program(pid: u32, uses: Uses) -> Vec<sock_filter> {
    let refuse = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    let mut code = vec![
        load(ARCHITECTURE_AT),
        skip_unless(ARCHITECTURE, 1),
        jump(1),
        ret(libc::SECCOMP_RET_KILL_PROCESS),
        load(NUMBER_AT),
    ];
    let of_dpdk: &[c_long] = if uses.has_dpdk { DPDK } else { &[] };
    let of_memif: &[c_long] = if uses.has_memif { MEMIF } else { &[] };
    let more = of_dpdk.iter().chain(of_memif);
    for call in ALWAYS.iter().chain(OLDER).chain(more) {
        code.push(skip_unless(number(*call), 1));
        code.push(ret(libc::SECCOMP_RET_ALLOW));
    }
    for one in checked(pid, uses) {
        code.extend([
            skip_unless(number(one.call), 5),
            load(ARGUMENTS_AT + 8 * one.argument),
            and(one.mask),
            skip_unless(one.value, 1),
            ret(libc::SECCOMP_RET_ALLOW),
            load(NUMBER_AT),
        ]);
    }
    code.push(ret(refuse));
    code
}

fn number(call: c_long) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

/// Loads a word of `struct seccomp_data`.
fn load(at: u32) -> sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, at)
}

fn and(mask: u32) -> sock_filter {
    instruction(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, mask)
}

/// Leaves out `count` instructions if the loaded word is not `value`.
fn skip_unless(value: u32, count: u8) -> sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, count, value)
}

fn jump(count: u32) -> sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JA, 0, count)
}

fn ret(action: u32) -> sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, 0, action)
}

fn instruction(code: u32, jf: u8, k: u32) -> sock_filter {
    sock_filter {
        code: u16::try_from(code).unwrap_or(0),
        jt: 0,
        jf,
        k,
    }
}

#[cfg(test)]
mod tests;
