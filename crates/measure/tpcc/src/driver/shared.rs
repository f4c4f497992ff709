//! What all threads of a run look at.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::clock::{Clock, SECOND_US};
use super::connection::Connector;

/// Different errors that are kept word by word.
const MOST_TROUBLES: usize = 20;

/// What all threads of a run look at.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) connector: Arc<dyn Connector>,
    /// The date at the start of the run, in seconds since 1970 of a clock on the wall.
    pub(super) date_at_start: i64,
    /// Attempts after the first one.
    pub(super) max_retries: u16,
    /// From here on no transaction begins.
    until_us: AtomicU64,
    /// From here on none that is queued begins either.
    drain_until_us: AtomicU64,
    /// Connections that are open; written when one is opened or lost only.
    connected: AtomicU32,
    troubles: Mutex<Troubles>,
}

/// Errors by their words, and how often.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Troubles {
    pub(super) by_text: BTreeMap<String, u64>,
    /// Those for which there was no room.
    pub(super) others: u64,
}

/// Which end holds for a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// Terminals: that of the run.
    Run,
    /// Those who carry out what is queued: that of the drain.
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
            troubles: Mutex::default(),
        }
    }

    /// The date of a transaction that begins now.
    pub(super) fn date(&self) -> i64 {
        let since_start = self.clock.now_us() / SECOND_US;
        self.date_at_start.saturating_add_unsigned(since_start)
    }

    pub(super) fn end_at(&self, until_us: u64, drain_until_us: u64) {
        self.until_us.store(until_us, Ordering::Relaxed);
        self.drain_until_us.store(drain_until_us, Ordering::Relaxed);
    }

    pub(super) fn until_us(&self, until: Until) -> u64 {
        match until {
            Until::Run => self.until_us.load(Ordering::Relaxed),
            Until::Drain => self.drain_until_us.load(Ordering::Relaxed),
        }
    }

    pub(super) fn is_over(&self, until: Until) -> bool {
        self.clock.now_us() >= self.until_us(until)
    }

    /// Lets time pass until `at_us`; false when the end comes first.
    pub(super) fn wait_until(&self, at_us: u64, until: Until) -> bool {
        loop {
            let (now_us, end_us) = (self.clock.now_us(), self.until_us(until));
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

    pub(super) fn note(&self, text: String) {
        let mut troubles = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = troubles.by_text.len() < MOST_TROUBLES;
        match troubles.by_text.get_mut(&text) {
            Some(count) => *count += 1,
            None if has_room => drop(troubles.by_text.insert(text, 1)),
            None => troubles.others += 1,
        }
    }

    pub(super) fn troubles(&self) -> Troubles {
        self.troubles
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
