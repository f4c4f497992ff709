//! One line at the bottom of a terminal: the amount recorded so far.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use saiga_record::{RecordError, Recorder};

use super::summary;
use crate::exit;

const PAUSE: Duration = Duration::from_secs(1);
/// Returns to the start of the line and erases it.
const ERASE: &str = "\r\x1b[K";

/// The progress line; erased on drop.
pub(super) struct Progress {
    is_shown: bool,
    next: Instant,
}

impl Progress {
    pub(super) fn new() -> Self {
        let can_erase =
            std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
        Self {
            is_shown: can_erase && io::stderr().is_terminal(),
            next: Instant::now() + PAUSE,
        }
    }

    /// Redraws the line, at most once a second.
    pub(super) fn show(&mut self, recorder: &mut Recorder) -> Result<(), RecordError> {
        if self.is_shown && Instant::now() >= self.next {
            self.next = Instant::now() + PAUSE;
            let line = summary::line(recorder.totals()?);
            self.write(&format!("{ERASE}{line}"));
        }
        Ok(())
    }

    /// Prints a message above the line.
    pub(super) fn say(&self, text: &str) {
        if self.is_shown {
            self.write(ERASE);
        }
        exit::say(text);
    }

    fn write(&self, text: &str) {
        let mut stderr = io::stderr();
        // Errors are ignored: the terminal may be gone.
        let _ = stderr
            .write_all(text.as_bytes())
            .and_then(|()| stderr.flush());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            self.write(ERASE);
        }
    }
}
