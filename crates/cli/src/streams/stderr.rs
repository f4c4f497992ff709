//! Non-blocking writes to standard error: a stopped reader does not delay labels.
//!
//! O_NONBLOCK would also affect other processes that share the descriptor, so poll(2) is asked for
//! room instead. A pipe that is ready accepts PIPE_BUF bytes without blocking (`man 7 pipe`).

use std::cell::Cell;
use std::io::{self, Write as _};

use rustix::event::{PollFd, PollFlags, Timespec};

/// Maximum bytes of one write: PIPE_BUF.
const PIECE: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Stderr {
    lost: Cell<u64>,
}

impl Stderr {
    /// Writes a line if there is room. Otherwise the line is dropped, and counted in the next line
    /// that is written.
    pub(super) fn write(&self, text: &str) {
        let lost = self.lost.take();
        if lost > 0
            && !piece(&format!(
                "{lost} lines were dropped because stderr was not read"
            ))
        {
            self.lost.set(lost + 1);
        } else if !piece(text) {
            self.lost.set(self.lost.get() + 1);
        }
    }
}

/// Writes a line, cut to one piece; returns whether there was room.
fn piece(text: &str) -> bool {
    let stderr = io::stderr();
    let mut wait = [PollFd::new(&stderr, PollFlags::OUT)];
    let at_once = Timespec::default();
    // Errors count as room: a closed stderr is not retried.
    if !matches!(rustix::event::poll(&mut wait, Some(&at_once)), Ok(1..)) {
        return false;
    }
    let mut line = format!("saiga: {text}").into_bytes();
    line.truncate(PIECE - 1);
    line.push(b'\n');
    let _ = stderr.lock().write_all(&line);
    true
}
