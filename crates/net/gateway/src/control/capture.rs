//! Captures for clients of the control socket.
//!
//! The gateway creates the file, with its own rights: only root and its own user get this far, and
//! both could create the file without the gateway. It is a new file of mode 0600 outside of
//! directories that all users may write to (`saiga_netdev::capture`).
//!
//! A capture ends with its client, at the size of the settings, or with the gateway.

use std::error::Error;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use saiga_netdev::capture::{self, Bound, Capture, Summary};
use saiga_netdev::filter::Filter;

use super::protocol::{Answer, Captured, End};
use super::send;
use crate::ending::{Ending, Woken};
use crate::observer::Observer;
use crate::settings;

/// How often a capture is looked at: workers end it at the bound without a message.
const LOOK: Duration = Duration::from_millis(200);

/// The captures of a gateway: one at a time.
#[derive(Debug)]
pub(super) struct Captures {
    observer: Arc<Observer>,
    settings: settings::Capture,
    ending: Ending,
    running: Option<Running>,
}

/// A capture, with the thread that follows it.
#[derive(Debug)]
struct Running {
    thread: JoinHandle<()>,
    /// Whether the capture has ended; its client may not have the last answer yet.
    is_over: Arc<AtomicBool>,
}

impl Captures {
    pub(super) const fn new(
        observer: Arc<Observer>,
        settings: settings::Capture,
        ending: Ending,
    ) -> Self {
        Self {
            observer,
            settings,
            ending,
            running: None,
        }
    }

    /// Begins a capture for a client, which then gets its answers from another thread. If that is
    /// not possible, gives the client back with the reason.
    pub(super) fn begin(
        &mut self,
        client: UnixStream,
        file: &Path,
        filter: &str,
    ) -> Result<(), (UnixStream, String)> {
        if self.is_capturing() {
            let reason = "the gateway is capturing for another client: wait for its end";
            return Err((client, reason.to_owned()));
        }
        let capture = match self.start(file, filter) {
            Ok(capture) => capture,
            Err(reason) => return Err((client, reason)),
        };
        let is_over = Arc::new(AtomicBool::new(false));
        let follower = Follower {
            client,
            capture,
            observer: Arc::clone(&self.observer),
            ending: self.ending.clone(),
            is_over: Arc::clone(&is_over),
        };
        let thread = thread::Builder::new().name("gateway-capture".to_owned());
        match thread.spawn(move || follower.run()) {
            Ok(thread) => self.running = Some(Running { thread, is_over }),
            // The client sees the end of the stream.
            Err(_) => end_all(&self.observer),
        }
        Ok(())
    }

    /// Whether a capture has not ended.
    fn is_capturing(&self) -> bool {
        let running = self.running.as_ref();
        running.is_some_and(|one| !one.is_over.load(Ordering::Acquire))
    }

    /// Creates the file, and makes all workers write to it.
    fn start(&self, file: &Path, filter: &str) -> Result<Capture, String> {
        if !file.is_absolute() {
            return Err(format!("{} is not an absolute path", file.display()));
        }
        let filter = filter.parse::<Filter>().map_err(|error| told(&error))?;
        let subjects = &self.observer.subjects;
        let infos: Vec<_> = subjects.iter().flat_map(|one| &one.devices).collect();
        let settings = capture::Settings {
            path: file,
            bound: Bound::Stop {
                bytes: self.settings.file_size.0,
            },
            snap_bytes: self.settings.snap_length,
            filter,
        };
        let capture = Capture::start(&settings, &infos).map_err(|error| told(&error))?;
        let mut first = 0;
        for subject in subjects {
            if let Err(error) = subject.handle.capture(&capture, first) {
                end_all(&self.observer);
                return Err(error.to_string());
            }
            first += u32::try_from(subject.devices.len()).unwrap_or(0);
        }
        Ok(capture)
    }
}

impl Drop for Captures {
    /// Waits for the last answer of a capture, which ends as the gateway does.
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            // A fault of the program has ended the process already.
            let _ended = running.thread.join();
        }
    }
}

/// What follows a capture.
struct Follower {
    client: UnixStream,
    capture: Capture,
    observer: Arc<Observer>,
    ending: Ending,
    is_over: Arc<AtomicBool>,
}

impl Follower {
    /// Waits for the end of the capture, and tells the client of its begin and of its end.
    fn run(mut self) {
        let begun = send(&mut self.client, &Answer::Capturing);
        let by = begun.map_or(End::Client, |()| self.wait());
        end_all(&self.observer);
        // The client may ask for another capture once it has the answer.
        self.is_over.store(true, Ordering::Release);
        // A client that has ended does not need the answer.
        let _told = send(
            &mut self.client,
            &Answer::Captured(captured(&self.capture, by)),
        );
    }

    /// Waits until the client has ended its stream, the gateway ends, or the capture has ended.
    fn wait(&self) -> End {
        loop {
            match self.ending.wait(self.client.as_fd(), Some(LOOK)) {
                Woken::Ending => return End::Gateway,
                Woken::Ready => return End::Client,
                Woken::Late if self.capture.summary().end.is_some() => return End::FileSize,
                Woken::Late => {}
            }
        }
    }
}

/// What was written. `by`: why the capture has ended, unless it has ended by itself.
fn captured(capture: &Capture, by: End) -> Captured {
    let Summary {
        frames,
        bytes,
        files: _,
        end,
    } = capture.summary();
    let end = match end {
        Some(capture::End::Bound) => End::FileSize,
        Some(capture::End::Failed(kind)) => End::Failed(kind.to_string()),
        None => by,
    };
    Captured { frames, bytes, end }
}

/// Ends the capture of all workers. A worker that has ended has written everything.
fn end_all(observer: &Observer) {
    for subject in &observer.subjects {
        let _ended = subject.handle.end_capture();
    }
}

/// An error with its causes.
fn told(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
