//! Requests of other threads and changes of the network, which a worker handles between two turns.
//!
//! A request is a message in a bounded queue and a wake-up. Each request has a queue for its one
//! answer, so the worker never waits for the asking thread; the answer to a thread that has ended
//! is dropped. A turn without requests costs one load of a flag. Each answer takes bounded time:
//! the connections are asked for page by page.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError};
use std::time::Duration;

use mio::Waker;
use saiga_netdev::capture::Capture;
use saiga_stack::Network;
use saiga_wire::ethernet::Mac;

use super::report::{Page, Report};

/// Most requests that wait.
const MOST_REQUESTS: usize = 16;
/// Most frames of other workers that wait. Those beyond are lost, as on a wire.
const MOST_OVERHEARD: usize = 64;
/// How long an asking thread waits for an answer. A turn takes some milliseconds at most.
const PATIENCE: Duration = Duration::from_secs(2);

/// Reaches a worker from other threads.
#[derive(Debug, Clone)]
pub struct Handle(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    is_stopped: AtomicBool,
    /// Whether requests or changes may wait.
    has_requests: AtomicBool,
    requests: SyncSender<Request>,
    /// Without a bound: a worker must not miss one.
    changes: Sender<Change>,
    overheard: SyncSender<Vec<u8>>,
    waker: Waker,
}

/// A change of the network.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// The network is another one. The sender has checked it.
    Network(Network),
    /// The kernel knows a neighbour now, or does not know it any more.
    Neighbour {
        /// Number of the interface in the network.
        interface: usize,
        address: IpAddr,
        mac: Option<Mac>,
    },
}

/// Why a worker has given no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// Too many requests wait.
    #[error("the worker has too many requests: ask again")]
    Busy,
    /// The worker has not answered in two seconds.
    #[error("the worker does not answer")]
    Late,
    /// The worker has ended.
    #[error("the worker has ended")]
    Ended,
}

/// What a worker is asked for, with the queue for the answer.
#[derive(Debug)]
pub(super) enum Request {
    /// Its counts.
    Report(SyncSender<Report>),
    /// Some of its connections, from a place on.
    Page { from: u32, answer: SyncSender<Page> },
    /// To write frames to a capture. Its devices are the interfaces from `first` on.
    Capture {
        capture: Capture,
        first: u32,
        answer: SyncSender<()>,
    },
    /// To end the capture.
    EndCapture(SyncSender<()>),
    /// To follow a change; there is no answer.
    Change(Change),
    /// To learn from a frame of another worker; there is no answer.
    Overheard(Vec<u8>),
}

impl Handle {
    /// The worker ends after its present turn.
    ///
    /// # Errors
    /// If a sleeping worker cannot be woken: it ends at its next event.
    pub fn stop(&self) -> io::Result<()> {
        self.0.is_stopped.store(true, Ordering::Release);
        self.0.waker.wake()
    }

    /// Tells the worker of a change. A worker that has ended does not get it.
    pub(crate) fn change(&self, change: Change) {
        if self.0.changes.send(change).is_ok() {
            self.announce();
        }
    }

    /// Shows the worker a frame of ARP or neighbour discovery that another worker has got.
    pub(super) fn overhear(&self, frame: &[u8]) {
        if self.0.overheard.try_send(frame.to_vec()).is_ok() {
            self.announce();
        }
    }

    /// The worker's counts.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn report(&self) -> Result<Report, AskError> {
        self.ask(Request::Report)
    }

    /// Some of the worker's connections: those from the place `from` on, first 0, then
    /// [`Page::next`].
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn page(&self, from: u32) -> Result<Page, AskError> {
        self.ask(|answer| Request::Page { from, answer })
    }

    /// Begins to write the frames of the worker's devices to a capture, in which they are the
    /// interfaces from `first` on. Replaces an earlier capture.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn capture(&self, capture: &Capture, first: u32) -> Result<(), AskError> {
        self.ask(|answer| Request::Capture {
            capture: capture.clone(),
            first,
            answer,
        })
    }

    /// Ends the capture; all its frames of this worker are written when this returns.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn end_capture(&self) -> Result<(), AskError> {
        self.ask(Request::EndCapture)
    }

    fn ask<T>(&self, request: impl FnOnce(SyncSender<T>) -> Request) -> Result<T, AskError> {
        let (answer, answers) = mpsc::sync_channel(1);
        let sent = self.0.requests.try_send(request(answer));
        sent.map_err(|error| match error {
            TrySendError::Full(_) => AskError::Busy,
            TrySendError::Disconnected(_) => AskError::Ended,
        })?;
        self.announce();
        answers.recv_timeout(PATIENCE).map_err(|error| match error {
            RecvTimeoutError::Timeout => AskError::Late,
            RecvTimeoutError::Disconnected => AskError::Ended,
        })
    }

    /// Wakes the worker.
    pub(super) fn wake(&self) {
        // A worker that cannot be woken goes on at its next event.
        let _woken = self.0.waker.wake();
    }

    /// Lets the worker look for what was sent.
    fn announce(&self) {
        // After the message: a worker that sees the flag finds the message.
        // A swap, not a store: a worker that sees this flag also finds the message of a sender that
        // has raised the flag before and was not seen.
        self.0.has_requests.swap(true, Ordering::Release);
        self.wake();
    }
}

/// The worker's end.
#[derive(Debug)]
pub(super) struct Inbox {
    requests: Receiver<Request>,
    changes: Receiver<Change>,
    overheard: Receiver<Vec<u8>>,
    handle: Handle,
}

impl Inbox {
    /// An inbox whose worker `waker` wakes.
    pub(super) fn new(waker: Waker) -> Self {
        let (sender, requests) = mpsc::sync_channel(MOST_REQUESTS);
        let (changed, changes) = mpsc::channel();
        let (overhear, overheard) = mpsc::sync_channel(MOST_OVERHEARD);
        let shared = Shared {
            is_stopped: AtomicBool::new(false),
            has_requests: AtomicBool::new(false),
            requests: sender,
            changes: changed,
            overheard: overhear,
            waker,
        };
        Self {
            requests,
            changes,
            overheard,
            handle: Handle(Arc::new(shared)),
        }
    }

    pub(super) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.handle.0.is_stopped.load(Ordering::Acquire)
    }

    /// The changes and requests that wait. Those that come during the call are returned by the next
    /// one.
    #[inline]
    pub(super) fn take(&self) -> Vec<Request> {
        let has_requests = &self.handle.0.has_requests;
        if !has_requests.load(Ordering::Relaxed) || !has_requests.swap(false, Ordering::Acquire) {
            return Vec::new();
        }
        let requests = self.requests.try_iter().take(MOST_REQUESTS);
        let changes = self.changes.try_iter().map(Request::Change);
        let overheard = self.overheard.try_iter().take(MOST_OVERHEARD);
        let overheard = overheard.map(Request::Overheard);
        changes.chain(overheard).chain(requests).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mio::{Events, Poll, Token};
    use std::thread;

    fn inbox() -> (Poll, Inbox) {
        let poll = Poll::new().unwrap();
        let waker = Waker::new(poll.registry(), Token(0)).unwrap();
        (poll, Inbox::new(waker))
    }

    #[test]
    fn a_request_wakes_the_worker_and_is_answered() {
        let (mut poll, inbox) = inbox();
        let handle = inbox.handle();
        let asking = thread::spawn(move || handle.end_capture());
        let mut events = Events::with_capacity(1);
        // Without the wake-up, this would not return.
        poll.poll(&mut events, None).unwrap();
        let mut requests = inbox.take();
        let Some(Request::EndCapture(answer)) = requests.pop() else {
            panic!("{requests:?}");
        };
        answer.try_send(()).unwrap();
        assert_eq!(asking.join().unwrap(), Ok(()));
        assert!(inbox.take().is_empty());
    }

    #[test]
    fn requests_beyond_the_bound_are_refused() {
        let (_poll, inbox) = inbox();
        let waiting: Vec<_> = (0..MOST_REQUESTS)
            .map(|_| {
                let (answer, answers) = mpsc::sync_channel(1);
                let request = Request::EndCapture(answer);
                inbox.handle.0.requests.try_send(request).unwrap();
                answers
            })
            .collect();
        assert_eq!(inbox.handle().end_capture(), Err(AskError::Busy));
        drop(waiting);
    }

    #[test]
    fn a_worker_that_has_ended_gives_no_answer() {
        let (_poll, inbox) = inbox();
        let handle = inbox.handle();
        drop(inbox);
        assert_eq!(handle.end_capture(), Err(AskError::Ended));
    }
}
