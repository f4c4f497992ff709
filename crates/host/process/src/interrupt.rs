//! [`Interrupt`]: SIGINT and SIGTERM as a value that loops check and waits include.
//!
//! The first signal asks the experiment to stop and to keep its measurements. The second signal
//! ends the process at once; the kernel then kills its children (`PR_SET_PDEATHSIG`, see
//! `process`).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionread};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Exit code after the second signal: 128 + SIGINT, as shells report it.
const EXIT_AFTER_SECOND: i32 = 130;

/// Whether the user asked to stop.
#[derive(Debug)]
pub struct Interrupt {
    raised: Arc<AtomicBool>,
    /// Receives a byte per signal, so it is readable after the first one.
    wake: Option<UnixStream>,
}

impl Interrupt {
    /// Handles SIGINT and SIGTERM of this process; the second signal ends the process.
    ///
    /// # Errors
    /// Fails if a system call fails, usually because no descriptor is free.
    pub fn on_signals() -> io::Result<Self> {
        let raised = Arc::new(AtomicBool::new(false));
        let (wake, ring) = UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM] {
            // The order matters: the conditional shutdown runs before the flag is set, so the first
            // signal does not end the process.
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

    /// Handles SIGINT, SIGTERM and SIGHUP. Later signals do not end the process either, so that it
    /// can finish in order.
    ///
    /// # Errors
    /// Fails if a system call fails, usually because no descriptor is free.
    pub fn on_signals_without_exit() -> io::Result<Self> {
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

    /// An interrupt that is never raised.
    #[must_use]
    pub fn never() -> Self {
        Self {
            raised: Arc::new(AtomicBool::new(false)),
            wake: None,
        }
    }

    /// Whether a signal was received.
    #[must_use]
    pub fn raised(&self) -> bool {
        self.raised.load(Ordering::SeqCst)
    }

    /// The number of received signals. Equal signals that are pending at the same time count once.
    ///
    /// # Errors
    /// Fails if a system call fails.
    pub fn count(&self) -> io::Result<u64> {
        // Each signal wrote a byte, and no code reads the bytes.
        Ok(self.wake.as_ref().map_or(Ok(0), ioctl_fionread)?)
    }

    /// Sleeps until a signal is received or `limit` has passed; returns whether a signal was
    /// received.
    ///
    /// # Errors
    /// Fails if a system call fails.
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

    /// A descriptor that is readable after a signal.
    pub(crate) fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.wake.as_ref().map(AsFd::as_fd)
    }
}
