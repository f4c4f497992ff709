//! The end of a gateway, as its threads learn of it.
//!
//! A thread that waits for clients waits for the end as well: a socket pair has its other end in
//! the gateway, and is readable once that end is closed. An idle thread sleeps without a time-out.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Ends the threads that have its [`Ending`] when it is dropped.
#[derive(Debug)]
pub(crate) struct Guard {
    _open: UnixStream,
}

/// Tells a thread that it must end.
#[derive(Debug, Clone)]
pub(crate) struct Ending(Arc<UnixStream>);

/// Why a wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    /// The descriptor is readable, or its other end is closed.
    Ready,
    /// The thread must end.
    Ending,
    /// The time is over, or a signal has come.
    Late,
}

/// A guard, and what its threads wait for.
///
/// # Errors
/// Those of socketpair(2): EMFILE and ENFILE.
pub(crate) fn pair() -> io::Result<(Guard, Ending)> {
    let (open, ending) = UnixStream::pair()?;
    Ok((Guard { _open: open }, Ending(Arc::new(ending))))
}

/// The pause after an error of accept(2), such as a lack of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

impl Ending {
    /// The next client of a listener that does not wait; `None` when the thread must end.
    pub(crate) fn accept<T>(
        &self,
        listener: BorrowedFd<'_>,
        mut accept: impl FnMut() -> io::Result<T>,
    ) -> Option<T> {
        loop {
            match self.wait(listener, None) {
                Woken::Ending => return None,
                Woken::Late => continue,
                Woken::Ready => {}
            }
            match accept() {
                Ok(client) => return Some(client),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) if self.wait_alone(PAUSE) => return None,
                Err(_) => {}
            }
        }
    }

    /// Waits until `other` is readable, the thread must end, or `limit` is over.
    pub(crate) fn wait(&self, other: BorrowedFd<'_>, limit: Option<Duration>) -> Woken {
        let own = self.0.as_fd();
        let mut polled = [
            PollFd::new(&own, PollFlags::IN),
            PollFd::new(&other, PollFlags::IN),
        ];
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        let done = poll(&mut polled, limit.as_ref());
        let [own, other] = polled.each_ref().map(|one| !one.revents().is_empty());
        match done {
            Ok(_) if own => Woken::Ending,
            Ok(_) if other => Woken::Ready,
            Ok(_) | Err(Errno::INTR) => Woken::Late,
            // Without memory for poll(2), the thread could only spin.
            Err(_) => Woken::Ending,
        }
    }

    /// Waits until the thread must end, for at most `limit`. Returns whether it must.
    pub(crate) fn wait_alone(&self, limit: Duration) -> bool {
        self.wait(self.0.as_fd(), Some(limit)) == Woken::Ending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::thread;

    #[test]
    fn a_waiting_thread_learns_of_clients_and_of_the_end() {
        let (guard, ending) = pair().unwrap();
        let (mut client, listener) = UnixStream::pair().unwrap();
        let short = Some(Duration::from_millis(1));
        assert_eq!(ending.wait(listener.as_fd(), short), Woken::Late);
        client.write_all(b"x").unwrap();
        assert_eq!(ending.wait(listener.as_fd(), None), Woken::Ready);
        let waiting = thread::spawn(move || {
            let (_silent, other) = UnixStream::pair().unwrap();
            ending.wait(other.as_fd(), None)
        });
        drop(guard);
        assert_eq!(waiting.join().unwrap(), Woken::Ending);
    }
}
