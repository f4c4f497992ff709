//! State that all threads of a run share: clock, connector, deadlines and error counts.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::clock::{Clock, SECOND_US};
use super::connection::Connector;

/// Maximum number of distinct error messages. Errors with further messages are counted together.
const MAX_ERRORS: usize = 20;

/// State that all threads of a run share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) connector: Arc<dyn Connector>,
    /// Local date at the start of the run, in seconds since 1970.
    pub(super) date_at_start: i64,
    /// Attempts at a transaction after the first one.
    pub(super) max_retries: u16,
    /// No transaction begins after this time.
    until_us: AtomicU64,
    /// No queued delivery begins after this time.
    drain_until_us: AtomicU64,
    /// Number of open connections.
    connected: AtomicU32,
    errors: Mutex<ErrorCounts>,
}

/// Error messages with their counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ErrorCounts {
    pub(super) by_text: BTreeMap<String, u64>,
    /// Number of errors beyond [`MAX_ERRORS`] distinct messages.
    pub(super) others: u64,
}

/// The deadline that applies to a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deadline {
    /// The end of the run, for terminals.
    Run,
    /// The end of the drain, for delivery workers.
    Drain,
}

impl Shared {
    pub(super) fn new(
        clock: Arc<dyn Clock>,
        connector: Arc<dyn Connector>,
        date_at_start: i64,
        max_retries: u16,
    ) -> Self {
        Self {
            clock,
            connector,
            date_at_start,
            max_retries,
            until_us: AtomicU64::new(u64::MAX),
            drain_until_us: AtomicU64::new(u64::MAX),
            connected: AtomicU32::new(0),
            errors: Mutex::default(),
        }
    }

    /// The date, in seconds since 1970, of a transaction that begins now.
    pub(super) fn date(&self) -> i64 {
        let since_start = self.clock.now_us() / SECOND_US;
        self.date_at_start.saturating_add_unsigned(since_start)
    }

    pub(super) fn end_at(&self, until_us: u64, drain_until_us: u64) {
        self.until_us.store(until_us, Ordering::Relaxed);
        self.drain_until_us.store(drain_until_us, Ordering::Relaxed);
    }

    pub(super) fn deadline_us(&self, deadline: Deadline) -> u64 {
        match deadline {
            Deadline::Run => self.until_us.load(Ordering::Relaxed),
            Deadline::Drain => self.drain_until_us.load(Ordering::Relaxed),
        }
    }

    pub(super) fn is_over(&self, deadline: Deadline) -> bool {
        self.clock.now_us() >= self.deadline_us(deadline)
    }

    /// Waits until `at_us`. Returns false if the deadline comes first.
    pub(super) fn wait_until(&self, at_us: u64, deadline: Deadline) -> bool {
        loop {
            let (now_us, end_us) = (self.clock.now_us(), self.deadline_us(deadline));
            if now_us >= end_us {
                return false;
            }
            if now_us >= at_us {
                return true;
            }
            self.clock.pause_until(at_us.min(end_us));
        }
    }

    pub(super) fn connected(&self) -> u32 {
        self.connected.load(Ordering::Relaxed)
    }

    pub(super) fn on_connected(&self) {
        self.connected.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn on_lost(&self) {
        self.connected.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn count_error(&self, text: String) {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = errors.by_text.len() < MAX_ERRORS;
        match errors.by_text.get_mut(&text) {
            Some(count) => *count += 1,
            None if has_room => drop(errors.by_text.insert(text, 1)),
            None => errors.others += 1,
        }
    }

    pub(super) fn errors(&self) -> ErrorCounts {
        self.errors
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
