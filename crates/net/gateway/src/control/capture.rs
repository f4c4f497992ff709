//! Captures for clients of the control socket.
//!
//! The client creates the file, with its own rights, and gives it to the gateway, which may create
//! none. Only empty regular files are taken: a pipe could make a worker wait for ever.
//! A slow file system still delays all workers.
//!
//! A capture ends with its client, at the size of the settings, or with the gateway.

use std::error::Error;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use saiga_netdev::capture::{self, Capture, Summary};
use saiga_netdev::filter::Filter;

use super::protocol::{Answer, Captured, End};
use super::{PATIENCE, descriptor, send};
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
        mut client: UnixStream,
        filter: &str,
    ) -> Result<(), (UnixStream, String)> {
        if self.is_capturing() {
            let reason = "the gateway is capturing for another client: wait for its end";
            return Err((client, reason.to_owned()));
        }
        let capture = match self.start(&mut client, filter) {
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

    /// Takes the client's file, and makes all workers write to it.
    fn start(&self, client: &mut UnixStream, filter: &str) -> Result<Capture, String> {
        let filter = filter.parse::<Filter>().map_err(|error| told(&error))?;
        let subjects = &self.observer.subjects;
        let infos: Vec<_> = subjects.iter().flat_map(|one| &one.devices).collect();
        let settings = capture::Settings {
            bytes: self.settings.file_size.0,
            snap_bytes: self.settings.snap_length,
            filter,
        };
        let file =
            file_of(client).map_err(|error| format!("no file to write to has come: {error}"))?;
        let capture = Capture::start(file, &settings, &infos).map_err(|error| told(&error))?;
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

/// Asks a client for its file.
fn file_of(client: &mut UnixStream) -> io::Result<File> {
    send(client, &Answer::File)?;
    client.set_read_timeout(Some(PATIENCE))?;
    descriptor::receive(client)
}

/// What was written. `by`: why the capture has ended, unless it has ended by itself.
fn captured(capture: &Capture, by: End) -> Captured {
    let Summary { frames, bytes, end } = capture.summary();
    let end = match end {
        Some(capture::End::Bound) => End::FileSize,
        Some(capture::End::Failed(reason)) => End::Failed(reason),
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
