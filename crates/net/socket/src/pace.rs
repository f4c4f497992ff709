//! The schedule of searches for the other end.
//!
//! The two ends may count very differently: one sends thousands of messages that the other receives
//! in one call. So the pause before the next search step grows with the messages and the time since
//! the search began, and ends when either limit is reached. A peer that comes late is found late in
//! proportion, and a peer that never comes costs a number of steps in proportion to a logarithm.

use crate::clock;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Messages before a second step, at least.
const FIRST_MESSAGES: u32 = 2;
/// Time before a second step, at least.
const FIRST_NS: u64 = 1_000_000;

/// A point in the life of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Messages counted so far, in both directions.
    pub(crate) messages: u32,
    /// CLOCK_MONOTONIC.
    pub(crate) ns: u64,
}

impl Moment {
    /// When the step after the one at `now` is due, in a search that began at `self`.
    pub(crate) fn after_look_at(self, now: Moment) -> Moment {
        let messages = now.messages.saturating_sub(self.messages) / 2;
        let ns = now.ns.saturating_sub(self.ns) / 4;
        Moment {
            messages: now.messages.saturating_add(messages.max(FIRST_MESSAGES)),
            ns: now.ns.saturating_add(ns.max(FIRST_NS)),
        }
    }

    /// Whether a step due at `self` is due now. The clock is read only if necessary. The largest
    /// number of either kind means never: messages are not counted beyond it.
    pub(crate) fn has_come(self, messages: u32, ns: impl FnOnce() -> u64) -> bool {
        let by_messages = messages >= self.messages && self.messages != u32::MAX;
        by_messages || (self.ns != u64::MAX && ns() >= self.ns)
    }
}

/// The schedule of one connection. Written under the socket's state lock.
#[derive(Debug)]
pub(crate) struct Pace {
    began_messages: AtomicU32,
    began_ns: AtomicU64,
    next_messages: AtomicU32,
    next_ns: AtomicU64,
}

impl Pace {
    /// Makes the first step due after `evidence` messages, however long they take.
    pub(crate) fn reset(&self, evidence: u32) {
        let Self {
            began_messages,
            began_ns,
            next_messages,
            next_ns,
        } = self;
        began_messages.store(0, Ordering::Relaxed);
        began_ns.store(0, Ordering::Relaxed);
        next_messages.store(evidence, Ordering::Relaxed);
        next_ns.store(u64::MAX, Ordering::Relaxed);
    }

    /// Starts the search, or starts it again.
    pub(crate) fn begin(&self, messages: u32) {
        self.began_messages.store(messages, Ordering::Relaxed);
        self.began_ns.store(clock::coarse_ns(), Ordering::Relaxed);
    }

    /// Schedules the next step after a pause that grows: the last step was unsuccessful.
    pub(crate) fn pause(&self, messages: u32) {
        if self.began_ns.load(Ordering::Relaxed) == 0 {
            self.begin(messages);
        }
        let began = Moment {
            messages: self.began_messages.load(Ordering::Relaxed),
            ns: self.began_ns.load(Ordering::Relaxed),
        };
        let ns = clock::coarse_ns();
        let next = began.after_look_at(Moment { messages, ns });
        self.next_messages.store(next.messages, Ordering::Relaxed);
        self.next_ns.store(next.ns, Ordering::Relaxed);
    }

    /// Makes the next step due after `messages` in total, at no particular time.
    pub(crate) fn step_at(&self, messages: u32) {
        self.next_messages.store(messages, Ordering::Relaxed);
        self.next_ns.store(u64::MAX, Ordering::Relaxed);
    }

    pub(crate) fn is_due(&self, messages: u32) -> bool {
        let next = Moment {
            messages: self.next_messages.load(Ordering::Relaxed),
            ns: self.next_ns.load(Ordering::Relaxed),
        };
        next.has_come(messages, clock::coarse_ns)
    }
}

#[cfg(test)]
mod tests;
