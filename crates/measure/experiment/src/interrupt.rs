//! SIGINT and SIGTERM as a value that loops ask and waits include.
//!
//! The first signal asks the experiment to stop and to keep what it measured; the
//! second ends the process at once, and the kernel then kills its children
//! (`PR_SET_PDEATHSIG`, see `process`).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionread};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Exit code after the second signal, as shells report a death by SIGINT.
const EXIT_AFTER_SECOND: i32 = 130;

/// Whether the user asked to stop.
#[derive(Debug)]
pub struct Interrupt {
    raised: Arc<AtomicBool>,
    /// Becomes readable with the first signal and stays so.
    wake: Option<UnixStream>,
}

impl Interrupt {
    /// Takes over SIGINT and SIGTERM of this process.
    ///
    /// # Errors
    /// The system call that failed: out of descriptors, usually.
    pub fn on_signals() -> io::Result<Self> {
        let raised = Arc::new(AtomicBool::new(false));
        let (wake, ring) = UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM] {
            // In this order: the flag is not yet set when the first signal comes through.
            let second = Arc::clone(&raised);
            signal_hook::flag::register_conditional_shutdown(signal, EXIT_AFTER_SECOND, second)?;
            signal_hook::flag::register(signal, Arc::clone(&raised))?;
            signal_hook::low_level::pipe::register(signal, ring.try_clone()?)?;
        }
        Ok(Self {
            raised,
            wake: Some(wake),
        })
    }

    /// Takes over SIGINT, SIGTERM and SIGHUP for good: a second one ends nothing, for the end has to be orderly.
    ///
    /// # Errors
    /// The system call that failed: out of descriptors, usually.
    pub fn on_signals_for_good() -> io::Result<Self> {
        let raised = Arc::new(AtomicBool::new(false));
        let (wake, ring) = UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&raised))?;
            signal_hook::low_level::pipe::register(signal, ring.try_clone()?)?;
        }
        Ok(Self {
            raised,
            wake: Some(wake),
        })
    }

    /// One that nobody raises.
    #[must_use]
    pub fn never() -> Self {
        Self {
            raised: Arc::new(AtomicBool::new(false)),
            wake: None,
        }
    }

    /// Whether a signal came.
    #[must_use]
    pub fn raised(&self) -> bool {
        self.raised.load(Ordering::SeqCst)
    }

    /// How many signals came; those that wait for the same turn of this process are one.
    ///
    /// # Errors
    /// The system call that failed.
    pub fn count(&self) -> io::Result<u64> {
        // Each has left a byte, which nobody reads.
        Ok(self.wake.as_ref().map_or(Ok(0), ioctl_fionread)?)
    }

    /// Sleeps until a signal came or the time is over; whether one came.
    ///
    /// # Errors
    /// The system call that failed.
    pub fn wait(&self, limit: Duration) -> io::Result<bool> {
        let deadline = Instant::now() + limit;
        while !self.raised() {
            let left = deadline.saturating_duration_since(Instant::now());
            let wake = self.wake_fd();
            let mut fds: Vec<PollFd<'_>> = wake
                .iter()
                .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
                .collect();
            match poll(&mut fds, Timespec::try_from(left).ok().as_ref()) {
                Ok(0) => return Ok(self.raised()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(true)
    }

    /// A descriptor that is readable once a signal came.
    pub(crate) fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.wake.as_ref().map(AsFd::as_fd)
    }
}
