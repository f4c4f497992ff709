//! Shows progress on stderr: a bar on a terminal, otherwise a line every ten seconds.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use saiga_snapshot::{Phase, Progress as Done};

use crate::exit;
use saiga_document::number;

/// Minimum time between two lines if stderr is not a terminal.
const LINE_PAUSE: Duration = Duration::from_secs(10);

pub(super) struct Progress {
    bar: ProgressBar,
    last_line: Mutex<Instant>,
}

impl Progress {
    pub(super) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let template = "{msg:10} {bar:24} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
        // The template is a constant and valid. If it were not, the default style would be used.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        let last_line = Mutex::new(Instant::now());
        Self { bar, last_line }
    }

    pub(super) fn show(&self, news: Done) {
        let word = match news.phase {
            Phase::Compare => "comparing",
            Phase::Check => "checking",
            Phase::Copy => "copying",
            Phase::ReadBack => "reading",
        };
        if !self.bar.is_hidden() {
            if self.bar.length() != Some(news.total_bytes) || self.bar.message() != word {
                self.bar.set_length(news.total_bytes);
                self.bar.set_message(word);
                self.bar.reset();
            }
            self.bar.set_position(news.done_bytes);
            return;
        }
        // If the lock is held, another thread prints the line.
        let Ok(mut last_line) = self.last_line.try_lock() else {
            return;
        };
        if last_line.elapsed() >= LINE_PAUSE {
            *last_line = Instant::now();
            let (done, total) = (
                number::bytes(news.done_bytes),
                number::bytes(news.total_bytes),
            );
            exit::say(&format!("{word}: {done} of {total}"));
        }
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
