//! How a labeller is told by signals to end or to read its rules again.

use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// What a labeller is told.
#[derive(Debug)]
pub struct Control {
    end: Arc<AtomicBool>,
    reload: Arc<AtomicBool>,
    heard: UnixStream,
    bell: UnixStream,
}

impl Control {
    /// Nothing is asked for yet.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn new() -> io::Result<Self> {
        let (heard, bell) = UnixStream::pair()?;
        heard.set_nonblocking(true)?;
        bell.set_nonblocking(true)?;
        Ok(Self {
            end: Arc::default(),
            reload: Arc::default(),
            heard,
            bell,
        })
    }

    /// From now on SIGTERM and SIGINT end the labeller, and SIGHUP makes it read its rules again.
    ///
    /// # Errors
    /// When a handler cannot be installed.
    pub fn on_signals(&self) -> io::Result<()> {
        for (signal, flag) in [
            (SIGTERM, &self.end),
            (SIGINT, &self.end),
            (SIGHUP, &self.reload),
        ] {
            signal_hook::flag::register(signal, Arc::clone(flag))?;
            signal_hook::low_level::pipe::register(signal, self.bell.try_clone()?)?;
        }
        Ok(())
    }

    /// What is set when the end is asked for.
    pub(crate) fn end_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.end)
    }

    pub(crate) fn shall_end(&self) -> bool {
        self.end.load(Ordering::Acquire)
    }

    /// Whether a reload was asked for since the last call.
    pub(crate) fn take_reload(&self) -> bool {
        self.reload.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn drain(&self) {
        let mut buffer = [0; 64];
        while matches!((&self.heard).read(&mut buffer), Ok(1..)) {}
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.heard.as_fd()
    }
}
