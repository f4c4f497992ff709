//! System calls that the standard library does not offer.
#![allow(
    unsafe_code,
    reason = "kill(2), prctl(2), waitid(2), pidfd_open(2) and prlimit(2) have no safe wrapper in std"
)]

use std::{
    io,
    mem::MaybeUninit,
    net::TcpStream,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd},
    time::Duration,
};

/// The signals that the tests send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGKILL.
    Kill,
    /// SIGSTOP.
    Stop,
    /// SIGCONT.
    Continue,
    /// SIGTERM.
    Terminate,
    /// SIGINT.
    Interrupt,
    /// SIGQUIT: nginx ends when its connections have ended, PostgreSQL at once.
    Quit,
    /// SIGHUP: servers read their configuration again.
    HangUp,
    /// SIGUSR2: nginx replaces its binary.
    User2,
    /// SIGWINCH: nginx's workers end when their connections have ended.
    Window,
}

impl Signal {
    fn number(self) -> libc::c_int {
        match self {
            Self::Kill => libc::SIGKILL,
            Self::Stop => libc::SIGSTOP,
            Self::Continue => libc::SIGCONT,
            Self::Terminate => libc::SIGTERM,
            Self::Interrupt => libc::SIGINT,
            Self::Quit => libc::SIGQUIT,
            Self::HangUp => libc::SIGHUP,
            Self::User2 => libc::SIGUSR2,
            Self::Window => libc::SIGWINCH,
        }
    }
}

fn pid(pid: u32) -> libc::pid_t {
    libc::pid_t::try_from(pid).expect("a pid fits pid_t")
}

/// Sends `signal` to one process that the caller started and has not reaped.
///
/// # Errors
/// As `kill(2)`: ESRCH if the process has ended.
pub fn signal(process: u32, signal: Signal) -> io::Result<()> {
    // SAFETY: kill takes two integers.
    let rc = unsafe { libc::kill(pid(process), signal.number()) };
    if rc == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Makes the kernel send `signal` to the calling process when the thread that started it ends.
///
/// # Errors
/// The errors of `prctl(2)`.
pub(crate) fn signal_at_parents_end(signal: Signal) -> io::Result<()> {
    // SAFETY: prctl takes two integers here.
    let rc = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal.number()) };
    if rc == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Kills the remaining processes of the process group of `leader`; there may be none.
pub fn kill_group(leader: u32) {
    // SAFETY: kill takes two integers. ESRCH, the usual case, needs no answer.
    unsafe { libc::kill(-pid(leader), libc::SIGKILL) };
}

/// Waits until the child `process` is stopped (SIGSTOP took effect), without reaping it.
///
/// # Errors
/// As `waitid(2)`: ECHILD if it is not a child.
pub fn wait_stopped(process: u32) -> io::Result<()> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let flags = libc::WSTOPPED | libc::WEXITED | libc::WNOWAIT;
    // SAFETY: `info` is writable for a siginfo_t.
    let rc = unsafe { libc::waitid(libc::P_PID, process, info.as_mut_ptr(), flags) };
    if rc == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Waits until `process` has ended (a zombie counts), a child or not; false after `limit`.
///
/// # Errors
/// The errors of `pidfd_open(2)`; a process that has ended is not an error.
pub fn await_end(process: u32, limit: Duration) -> io::Result<bool> {
    // SAFETY: pidfd_open takes two integers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid(process), 0) };
    if fd < 0 {
        let error = io::Error::last_os_error();
        let gone = error.raw_os_error() == Some(libc::ESRCH);
        return if gone { Ok(true) } else { Err(error) };
    }
    let fd = RawFd::try_from(fd).expect("descriptors are small");
    // SAFETY: a fresh descriptor without another owner.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    readable(fd.as_raw_fd(), limit)
}

/// Whether `fd` becomes readable (data, end or error) before `limit`.
///
/// # Errors
/// The errors of `poll(2)`.
pub fn readable(fd: RawFd, limit: Duration) -> io::Result<bool> {
    let mut entry = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    let timeout = libc::c_int::try_from(limit.as_millis()).unwrap_or(libc::c_int::MAX);
    // SAFETY: one pollfd, owned by this frame.
    let rc = unsafe { libc::poll(&raw mut entry, 1, timeout) };
    if rc < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(rc > 0)
    }
}

/// Sleeps for a millisecond between two checks, so that other processes can run.
pub fn pause_1ms() {
    // SAFETY: no descriptors.
    unsafe { libc::poll(std::ptr::null_mut(), 0, 1) };
}

/// Whether this process runs as root.
pub fn is_root() -> bool {
    // SAFETY: no preconditions.
    unsafe { libc::geteuid() == 0 }
}

/// The hard limit of descriptors of this process, which its children inherit.
pub fn descriptor_hard_limit() -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is a writable rlimit.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    limit.rlim_max
}

/// A TCP connection from `source` (any port) to `target` at `port`.
///
/// # Errors
/// The errors of `bind(2)` and `connect(2)`.
pub fn connect_from(source: [u8; 4], target: [u8; 4], port: u16) -> io::Result<TcpStream> {
    connect_with(&[], source, target, port)
}

/// A connection both of whose ends buffer few unread bytes: a small window, and segments so small
/// that the other end's buffer stays small.
///
/// # Errors
/// The errors of `setsockopt(2)`, `bind(2)` and `connect(2)`.
pub fn connect_narrowly(source: [u8; 4], target: [u8; 4], port: u16) -> io::Result<TcpStream> {
    let options = [
        (libc::SOL_SOCKET, libc::SO_RCVBUF, 2048),
        (libc::IPPROTO_TCP, libc::TCP_MAXSEG, 536),
    ];
    connect_with(&options, source, target, port)
}

fn connect_with(
    options: &[(i32, i32, i32)],
    source: [u8; 4],
    target: [u8; 4],
    port: u16,
) -> io::Result<TcpStream> {
    let name = |address: [u8; 4], port: u16| libc::sockaddr_in {
        sin_family: libc::sa_family_t::try_from(libc::AF_INET).expect("a small constant"),
        sin_port: port.to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from_ne_bytes(address),
        },
        sin_zero: [0; 8],
    };
    let length = libc::socklen_t::try_from(size_of::<libc::sockaddr_in>()).expect("16");
    // SAFETY: plain integers.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a fresh descriptor without another owner.
    let stream = unsafe { TcpStream::from_raw_fd(fd) };
    for (level, name, value) in options {
        let at = core::ptr::from_ref(value).cast();
        let size = libc::socklen_t::try_from(size_of::<i32>()).expect("4");
        // SAFETY: an int, and its size.
        if unsafe { libc::setsockopt(fd, *level, *name, at, size) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    let (from, to) = (name(source, 0), name(target, port));
    // SAFETY: `from` is a sockaddr_in of `length` bytes.
    let bound = unsafe { libc::bind(fd, (&raw const from).cast(), length) };
    if bound < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `to` is a sockaddr_in of `length` bytes.
    let connected = unsafe { libc::connect(fd, (&raw const to).cast(), length) };
    if connected < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(stream)
    }
}
