//! Ends a labeller or reloads its rules by signals: SIGTERM, SIGINT and SIGHUP.
//!
//! Signal handlers set a flag and write to a socket, which wakes the labeller's poll(2).

use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Requests to a labeller.
#[derive(Debug)]
pub struct Control {
    end: Arc<AtomicBool>,
    reload: Arc<AtomicBool>,
    wake_reader: UnixStream,
    wake_writer: UnixStream,
}

impl Control {
    /// Creates a control without any request.
    ///
    /// # Errors
    /// No descriptors are left.
    pub fn new() -> io::Result<Self> {
        let (wake_reader, wake_writer) = UnixStream::pair()?;
        wake_reader.set_nonblocking(true)?;
        wake_writer.set_nonblocking(true)?;
        Ok(Self {
            end: Arc::default(),
            reload: Arc::default(),
            wake_reader,
            wake_writer,
        })
    }

    /// Installs the signal handlers: SIGTERM and SIGINT end the labeller, SIGHUP reloads its rules.
    ///
    /// # Errors
    /// A handler cannot be installed.
    pub fn on_signals(&self) -> io::Result<()> {
        for (signal, flag) in [
            (SIGTERM, &self.end),
            (SIGINT, &self.end),
            (SIGHUP, &self.reload),
        ] {
            signal_hook::flag::register(signal, Arc::clone(flag))?;
            signal_hook::low_level::pipe::register(signal, self.wake_writer.try_clone()?)?;
        }
        Ok(())
    }

    /// Returns the flag that is set when the labeller must end.
    pub(crate) fn end_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.end)
    }

    pub(crate) fn shall_end(&self) -> bool {
        self.end.load(Ordering::Acquire)
    }

    /// Whether a reload was requested since the last call.
    pub(crate) fn take_reload(&self) -> bool {
        self.reload.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn drain(&self) {
        let mut buffer = [0; 64];
        while matches!((&self.wake_reader).read(&mut buffer), Ok(1..)) {}
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake_reader.as_fd()
    }
}
