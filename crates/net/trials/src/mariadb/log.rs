//! A server's log, followed while it runs: waiting for a line is waiting for an event.

use std::{
    io::{BufRead as _, BufReader, Read},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

/// How much of it a failure shows.
const TAIL_LINES: usize = 30;

/// What has been written so far.
#[derive(Debug, Default)]
struct Written {
    lines: Vec<String>,
    ended: bool,
}

/// The log of one run of a server.
#[derive(Debug)]
pub(super) struct Log {
    shared: Arc<(Mutex<Written>, Condvar)>,
}

impl Log {
    /// Reads `stream` to its end in a thread of its own.
    pub(super) fn follow(stream: impl Read + Send + 'static) -> Self {
        let shared = Arc::new((Mutex::new(Written::default()), Condvar::new()));
        let log = Self {
            shared: Arc::clone(&shared),
        };
        thread::spawn(move || {
            for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                lock(&shared.0).lines.push(line);
                shared.1.notify_all();
            }
            lock(&shared.0).ended = true;
            shared.1.notify_all();
        });
        log
    }

    /// Waits for a line with `part` in it; false when the log ends or the limit passes before.
    pub(super) fn await_line(&self, part: &str, limit: Duration) -> bool {
        let has = |written: &Written| written.lines.iter().any(|line| line.contains(part));
        let written = self.wait(limit, |written| has(written) || written.ended);
        has(&written)
    }

    /// Waits for its end, which is that of the server; false when the limit passes before.
    pub(super) fn await_end(&self, limit: Duration) -> bool {
        self.wait(limit, |written| written.ended).ended
    }

    /// The last lines.
    pub(super) fn tail(&self) -> String {
        let written = lock(&self.shared.0);
        let from = written.lines.len().saturating_sub(TAIL_LINES);
        written.lines[from..].join("\n")
    }

    fn wait(&self, limit: Duration, until: impl Fn(&Written) -> bool) -> MutexGuard<'_, Written> {
        let (written, news) = &*self.shared;
        news.wait_timeout_while(lock(written), limit, |written| !until(written))
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }
}

fn lock(written: &Mutex<Written>) -> MutexGuard<'_, Written> {
    written.lock().unwrap_or_else(PoisonError::into_inner)
}
