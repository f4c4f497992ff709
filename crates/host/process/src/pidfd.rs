//! A running process, identified by a pidfd (`man 2 pidfd_open`).

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::interrupt::Interrupt;

/// A process. Its number cannot pass to another process while this value exists.
#[derive(Debug)]
pub struct Process(OwnedFd);

/// The result of a wait for the end of a process.
pub(crate) enum WaitResult {
    /// The process has ended; its parent may not have reaped it yet.
    End,
    TimeOver,
    Interrupt,
}

impl Process {
    /// Opens the process `pid`; `None` if there is none.
    ///
    /// # Errors
    /// The descriptor cannot be opened, for example because this process has too many.
    pub fn open(pid: u32) -> io::Result<Option<Self>> {
        let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
            return Ok(None);
        };
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(fd) => Ok(Some(Self(fd))),
            // The number is that of a thread: EINVAL, and ENOENT since Linux 6.15.
            Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the process has ended, or ends within `limit`.
    ///
    /// # Errors
    /// The wait fails, usually for lack of memory.
    pub fn ends_within(&self, limit: Duration) -> io::Result<bool> {
        let result = self.wait(limit, &Interrupt::never())?;
        Ok(matches!(result, WaitResult::End))
    }

    /// Waits until the process ends, the user interrupts, or `limit` has passed.
    pub(crate) fn wait(&self, limit: Duration, interrupt: &Interrupt) -> io::Result<WaitResult> {
        // `None` means without a limit: the end is beyond the range of the clock.
        let deadline = Instant::now().checked_add(limit);
        loop {
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            let mut fds = vec![PollFd::new(&self.0, PollFlags::IN)];
            let wake = interrupt.wake_fd();
            fds.extend(wake.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
            match poll(&mut fds, timeout.as_ref()) {
                Ok(0) => return Ok(WaitResult::TimeOver),
                Ok(_) if !fds[0].revents().is_empty() => return Ok(WaitResult::End),
                Ok(_) => return Ok(WaitResult::Interrupt),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Sends a signal; nothing if the process has ended.
    ///
    /// # Errors
    /// The process belongs to another user.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        match pidfd_send_signal(&self.0, signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::thread::JoinHandleExt as _;
    use std::process::{Command, Stdio};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, mpsc};
    use std::thread;

    use signal_hook::consts::SIGUSR1;

    use super::*;

    #[test]
    fn a_process_is_seen_running_and_ended() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let process = Process::open(child.id()).unwrap().unwrap();
        assert!(!process.ends_within(Duration::ZERO).unwrap());
        process.signal(Signal::TERM).unwrap();
        assert!(process.ends_within(Duration::from_secs(60)).unwrap());
        child.wait().unwrap();
        process.signal(Signal::TERM).unwrap();
        assert!(process.ends_within(Duration::ZERO).unwrap());
    }

    #[test]
    fn a_number_without_a_process_is_no_error() {
        // Zero, greater than `PID_MAX_LIMIT` of the kernel, and negative as a pid_t.
        for pid in [0, 1 << 23, u32::MAX] {
            assert!(Process::open(pid).unwrap().is_none(), "{pid}");
        }
        let (sent, received) = mpsc::channel();
        thread::scope(|scope| {
            let (end, ended) = mpsc::channel::<()>();
            scope.spawn(move || {
                sent.send(rustix::thread::gettid()).unwrap();
                let _ = ended.recv();
            });
            let thread = received.recv().unwrap().as_raw_nonzero().get();
            let process = Process::open(thread.unsigned_abs());
            assert!(process.unwrap().is_none(), "a thread is not a process");
            drop(end);
        });
    }

    #[test]
    #[expect(unsafe_code, reason = "pthread_kill has no safe wrapper")]
    fn signals_do_not_end_a_wait() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let process = Process::open(child.id()).unwrap().unwrap();
        let handled = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGUSR1, Arc::clone(&handled)).unwrap();
        let waiter = thread::spawn(move || process.ends_within(Duration::MAX));
        // A signal may arrive before the thread waits, but not all of so many.
        for _ in 0..1000 {
            handled.store(false, Ordering::SeqCst);
            // SAFETY: the thread is not joined yet, so its identifier is valid.
            let result = unsafe { libc::pthread_kill(waiter.as_pthread_t(), SIGUSR1) };
            assert_eq!(result, 0);
            while !handled.load(Ordering::SeqCst) && !waiter.is_finished() {
                thread::yield_now();
            }
        }
        child.kill().unwrap();
        assert!(waiter.join().unwrap().unwrap());
        child.wait().unwrap();
    }
}
