//! Standard error, without waiting for its reader: one who has stopped holds up no label.
//!
//! Whether a descriptor blocks is a property that it shares with other processes, so it is asked for room instead. What
//! is ready for writing takes as many bytes as a pipe takes in one piece (`man 7 pipe`, PIPE_BUF) without blocking.

use std::cell::Cell;
use std::io::{self, Write as _};

use rustix::event::{PollFd, PollFlags, Timespec};

/// Bytes that are written in one piece.
const PIECE: usize = 4096;

/// Lines for standard error.
#[derive(Debug, Default)]
pub(super) struct Stderr {
    lost: Cell<u64>,
}

impl Stderr {
    /// Writes a line if there is room for it; what was left out is said with the next one that finds room.
    pub(super) fn write(&self, text: &str) {
        let lost = self.lost.take();
        if lost > 0 && !piece(&format!("{lost} lines were lost, nobody read them")) {
            self.lost.set(lost + 1);
        } else if !piece(text) {
            self.lost.set(self.lost.get() + 1);
        }
    }
}

/// Writes a line, cut to one piece; whether there was room.
fn piece(text: &str) -> bool {
    let stderr = io::stderr();
    let mut wait = [PollFd::new(&stderr, PollFlags::OUT)];
    let at_once = Timespec::default();
    // With nobody left to tell there is no need for room, either.
    if !matches!(rustix::event::poll(&mut wait, Some(&at_once)), Ok(1..)) {
        return false;
    }
    let mut line = format!("saiga: {text}").into_bytes();
    line.truncate(PIECE - 1);
    line.push(b'\n');
    let _ = stderr.lock().write_all(&line);
    true
}
