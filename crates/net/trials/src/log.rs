//! The stderr of a server, collected line by line as it is written.
//!
//! A test waits for a line instead of sleeping, and a failure shows the last lines.

use std::{
    io::{self, BufRead as _, BufReader, PipeReader, PipeWriter},
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread,
    time::Duration,
};

use crate::scale::patient;

/// A server that does not write the awaited line within this time counts as hung.
const PATIENCE: Duration = Duration::from_secs(60);

/// All lines that the processes of a server have written.
#[derive(Debug)]
pub struct Log {
    lines: Arc<Lines>,
    writer: PipeWriter,
}

#[derive(Debug, Default)]
struct Lines {
    said: Mutex<Vec<String>>,
    more: Condvar,
}

impl Lines {
    fn said(&self) -> MutexGuard<'_, Vec<String>> {
        self.said.lock().expect("no holder panics")
    }
}

impl Log {
    /// An empty log with a collecting thread.
    pub(crate) fn new() -> Self {
        let (reader, writer) = io::pipe().expect("a pipe");
        let lines = Arc::new(Lines::default());
        let collected = Arc::clone(&lines);
        // Ends when the last process that may write has ended.
        thread::spawn(move || collect(reader, &collected));
        Self { lines, writer }
    }

    /// The pipe for a server's output.
    pub(crate) fn writer(&self) -> PipeWriter {
        self.writer.try_clone().expect("a descriptor")
    }

    /// The number of lines so far, as a mark for [`Log::await_after`].
    pub fn mark(&self) -> usize {
        self.lines.said().len()
    }

    /// Waits for a line after `mark` that contains `text`.
    ///
    /// # Panics
    /// If none comes within the limit; shows the last lines.
    pub fn await_after(&self, mark: usize, text: &str) -> String {
        let has = |said: &Vec<String>| said.iter().skip(mark).any(|line| line.contains(text));
        let (said, _) = self
            .lines
            .more
            .wait_timeout_while(self.lines.said(), patient(PATIENCE), |said| !has(said))
            .expect("no holder panics");
        let found = said.iter().skip(mark).find(|line| line.contains(text));
        match found.cloned() {
            Some(line) => line,
            None => {
                drop(said);
                panic!("the server did not write '{text}':\n{}", self.tail())
            }
        }
    }

    /// The last 30 lines.
    pub fn tail(&self) -> String {
        let said = self.lines.said();
        said[said.len().saturating_sub(30)..].join("\n")
    }
}

fn collect(reader: PipeReader, lines: &Lines) {
    for line in BufReader::new(reader).split(b'\n') {
        let Ok(line) = line else { return };
        let text = String::from_utf8_lossy(&line).into_owned();
        lines.said().push(text);
        lines.more.notify_all();
    }
}
