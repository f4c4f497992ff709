//! The few system calls that the standard library does not offer.
#![allow(
    unsafe_code,
    reason = "kill(2), waitid(2) and prlimit(2) have no safe wrapper in std"
)]

use std::{io, mem::MaybeUninit, os::fd::RawFd, time::Duration};

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
}

impl Signal {
    fn number(self) -> libc::c_int {
        match self {
            Self::Kill => libc::SIGKILL,
            Self::Stop => libc::SIGSTOP,
            Self::Continue => libc::SIGCONT,
            Self::Terminate => libc::SIGTERM,
        }
    }
}

fn pid(pid: u32) -> libc::pid_t {
    libc::pid_t::try_from(pid).expect("a pid fits pid_t")
}

/// Sends `signal` to one process that the caller started and has not reaped.
///
/// # Errors
/// As `kill(2)`: ESRCH when it is gone.
pub fn signal(process: u32, signal: Signal) -> io::Result<()> {
    // SAFETY: kill takes two integers.
    let rc = unsafe { libc::kill(pid(process), signal.number()) };
    if rc == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Kills what is left of the process group that `leader` made; none left is fine.
pub fn kill_group(leader: u32) {
    // SAFETY: kill takes two integers. ESRCH, the usual case, needs no answer.
    unsafe { libc::kill(-pid(leader), libc::SIGKILL) };
}

/// Waits until the child `process` is stopped (SIGSTOP took effect), without reaping it.
///
/// # Errors
/// As `waitid(2)`: ECHILD when it is not a child.
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

/// Whether `fd` becomes readable (data, end or error) before `limit`.
///
/// # Errors
/// As `poll(2)`.
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

/// The hard limit on descriptors of this process, which its children inherit.
pub fn descriptor_hard_limit() -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is a writable rlimit.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    limit.rlim_max
}
