//! Counts the threads that sleep in an epoll set, and decides whether an entry that becomes ready
//! must ring the bell that wakes them.
//!
//! The list of ready entries changes under a lock. A thread that adds an entry checks, under the
//! same lock, whether to ring the bell. A thread that is about to sleep joins first, and then
//! checks the list under the lock. So the second critical section sees what the other thread did.
//! Without the lock, the entry could become visible only after the check of the list, and neither
//! thread would see the other. `tests/loom/sleepers.rs` tries every interleaving.

use crate::crowd::{Crowd, Ticket};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// The threads of this process that sleep in one set, and their bell.
#[derive(Debug)]
pub struct Sleepers {
    asleep: Crowd,
    /// Name of the bell; 0 while the set has none.
    bell: AtomicU64,
    /// 1 once the set itself is polled: by another set, poll, select or io_uring.
    latched: AtomicU32,
}

impl Sleepers {
    #[cfg(loom)]
    /// Creates the sleepers of a new set, for the model checker.
    pub fn model() -> Self {
        Self {
            asleep: Crowd::model(),
            bell: AtomicU64::new(0),
            latched: AtomicU32::new(0),
        }
    }

    /// Removes all threads and the bell, for the record of a set that begins or has ended.
    pub fn clear(&self) {
        let Self {
            asleep,
            bell,
            latched,
        } = self;
        asleep.clear();
        bell.store(0, Ordering::Relaxed);
        latched.store(0, Ordering::Relaxed);
    }

    /// Counts the caller as asleep. Before the caller sleeps, it must check the list, or check that
    /// the set still has no bell.
    pub fn join(&self, epoch: u32) -> Ticket {
        self.asleep.join(epoch)
    }

    /// Counts the caller as awake.
    pub fn part(&self, ticket: Ticket, epoch: u32) {
        self.asleep.part(ticket, epoch);
    }

    /// Whether no thread sleeps.
    #[must_use]
    pub fn are_none(&self, epoch: u32) -> bool {
        self.asleep.is_empty(epoch)
    }

    /// Name of the bell; `None` while the set has none.
    pub fn bell(&self) -> Option<u64> {
        Some(self.bell.load(Ordering::SeqCst)).filter(|name| *name != 0)
    }

    /// Sets the bell. The caller then adds the first entry of the set.
    pub fn hang_bell(&self, name: u64) {
        self.bell.store(name, Ordering::SeqCst);
    }

    /// Makes the bell ring for every later entry, even without sleepers. True if it already did.
    pub fn latch(&self) -> bool {
        self.latched.swap(1, Ordering::SeqCst) != 0
    }

    /// Returns the bell to ring after an entry was added to the list; `None` if no ring is needed.
    /// The caller still holds the list's lock.
    #[must_use]
    pub fn to_ring(&self, epoch: u32) -> Option<u64> {
        let watched = !self.are_none(epoch) || self.latched.load(Ordering::Relaxed) != 0;
        watched.then(|| self.bell()).flatten()
    }

    /// As [`to_ring`](Self::to_ring), for a thread that leaves the set. While the thread was awake,
    /// no bell rang for it, so other threads must learn of the events that are left: `has_events`
    /// returns whether there are any. The caller holds the list's lock.
    pub fn hand_over(&self, epoch: u32, has_events: impl FnOnce() -> bool) -> Option<u64> {
        self.to_ring(epoch).filter(|_| has_events())
    }
}
