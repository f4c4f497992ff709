//! The filter, run by an interpreter of the few instructions that it has.

use super::*;

const PID: u32 = 4321;
const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
/// SECCOMP_RET_ERRNO with ENOSYS, 38.
const REFUSE: u32 = 0x0005_0000 | 38;

/// What the filter says of a call.
fn verdict(architecture: u32, call: c_long, arguments: [u64; 3], uses: Uses) -> u32 {
    let word = |at: u32| match at {
        0 => number(call),
        4 => architecture,
        _ => {
            let argument = arguments[(at as usize - 16) / 8];
            u32::try_from(argument & u64::from(u32::MAX)).unwrap()
        }
    };
    let code = program(PID, uses);
    let (mut next, mut loaded) = (0, 0);
    loop {
        let sock_filter {
            code: op,
            jt,
            jf,
            k,
        } = code[next];
        next += 1;
        match op {
            0x20 => loaded = word(k),
            0x54 => loaded &= k,
            0x15 => next += usize::from(if loaded == k { jt } else { jf }),
            0x05 => next += k as usize,
            0x06 => return k,
            _ => panic!("instruction {op:#x}"),
        }
    }
}

fn of(call: c_long, arguments: [u64; 3]) -> u32 {
    verdict(ARCHITECTURE, call, arguments, Uses::default())
}

#[test]
fn what_serving_needs_is_allowed() {
    // What pthread_create(3) of glibc passes to clone(2).
    let thread = 0x003d_0f00;
    for (name, call, arguments) in [
        ("read", libc::SYS_read, [3, 0, 10]),
        ("the last of the list", libc::SYS_uname, [0; 3]),
        ("a TCP socket", libc::SYS_socket, [2, 1, 6]),
        ("a netlink socket", libc::SYS_socket, [16, 3, 0]),
        ("a thread", libc::SYS_clone, [thread, 0, 0]),
        ("the name of a thread", libc::SYS_prctl, [15, 0, 0]),
        ("memory", libc::SYS_mmap, [0, 4096, 3]),
        ("bytes that wait", libc::SYS_ioctl, [3, 0x541b, 0]),
        ("an urgent byte", libc::SYS_ioctl, [3, 0x8905, 0]),
        ("abort", libc::SYS_tgkill, [u64::from(PID), 7, 6]),
        ("whether a peer lives", libc::SYS_kill, [1, 0, 0]),
        ("own limits", libc::SYS_prlimit64, [0, 7, 0]),
    ] {
        assert_eq!(of(call, arguments), ALLOW, "{name}");
    }
}

#[test]
fn what_an_intruder_wants_is_refused() {
    let process = 0x0120_0011; // fork(3)
    for (name, call, arguments) in [
        ("a program", libc::SYS_execve, [0; 3]),
        ("a program by descriptor", libc::SYS_execveat, [0; 3]),
        ("a process", libc::SYS_clone, [process, 0, 0]),
        ("a process or thread", libc::SYS_clone3, [0; 3]),
        (
            "a thread in a namespace",
            libc::SYS_clone,
            [0x5001_0f00, 0, 0],
        ),
        ("packets", libc::SYS_socket, [17, 3, 0]),
        ("XDP", libc::SYS_socket, [44, 3, 0]),
        ("virtual sockets", libc::SYS_socket, [40, 1, 0]),
        ("executable memory", libc::SYS_mmap, [0, 4096, 5]),
        (
            "memory that becomes executable",
            libc::SYS_mprotect,
            [0, 4096, 4],
        ),
        ("typing", libc::SYS_ioctl, [0, 0x5412, 0]),
        ("a signal", libc::SYS_kill, [1, 9, 0]),
        ("a signal to a thread", libc::SYS_tgkill, [1, 1, 9]),
        ("another's limits", libc::SYS_prlimit64, [1, 7, 0]),
        ("keeping capabilities", libc::SYS_prctl, [8, 1, 0]),
        ("tracing", libc::SYS_ptrace, [16, 1, 0]),
        ("another's memory", libc::SYS_process_vm_writev, [1, 0, 0]),
        ("a BPF program", libc::SYS_bpf, [5, 0, 0]),
        ("a BPF map's content", libc::SYS_bpf, [2, 0, 0]),
        ("a mount", libc::SYS_mount, [0; 3]),
        ("a module", libc::SYS_finit_module, [0; 3]),
        ("a namespace", libc::SYS_unshare, [0x1000_0000, 0, 0]),
        ("another namespace", libc::SYS_setns, [3, 0, 0]),
        ("io_uring", libc::SYS_io_uring_setup, [8, 0, 0]),
        ("a user", libc::SYS_setuid, [0; 3]),
        ("capabilities", libc::SYS_capset, [0; 3]),
        ("a call of x32", 0x4000_0000, [0; 3]),
        ("a call of the future", 900, [0; 3]),
    ] {
        assert_eq!(of(call, arguments), REFUSE, "{name}");
    }
}

#[test]
fn maps_of_a_loaded_program_can_be_changed_and_none_made() {
    let uses = Uses {
        has_bpf: true,
        ..Uses::default()
    };
    let with_bpf = |command| verdict(ARCHITECTURE, libc::SYS_bpf, [command, 0, 0], uses);
    let verdicts: Vec<u32> = (0..6).map(with_bpf).collect();
    assert_eq!(verdicts, [REFUSE, REFUSE, ALLOW, ALLOW, REFUSE, REFUSE]);
}

#[test]
fn timers_are_set_for_dpdk_and_memif_alone() {
    let dpdk = Uses {
        has_dpdk: true,
        ..Uses::default()
    };
    let memif = Uses {
        has_memif: true,
        ..Uses::default()
    };
    let (set, look) = (libc::SYS_timerfd_settime, libc::SYS_fstatfs);
    for (name, call, uses, expected) in [
        ("a timer of DPDK", set, dpdk, ALLOW),
        ("a timer of memif", set, memif, ALLOW),
        ("another timer", set, Uses::default(), REFUSE),
        ("memory of a peer", look, memif, ALLOW),
        ("a file system", look, dpdk, REFUSE),
    ] {
        assert_eq!(
            verdict(ARCHITECTURE, call, [3, 0, 0], uses),
            expected,
            "{name}"
        );
    }
}

/// The numbers of another architecture have other meanings: i386's 11 is execve.
#[test]
fn calls_of_another_architecture_end_the_process() {
    let i386 = 0x4000_0003;
    let killed = verdict(i386, 11, [0; 3], Uses::default());
    assert_eq!(killed, libc::SECCOMP_RET_KILL_PROCESS);
}
