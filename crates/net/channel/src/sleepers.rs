//! How threads that sleep in a set learn of entries that become ready there.
//!
//! A list of ready entries changes under a lock. A thread that adds an entry checks, under the same
//! lock, whether to ring the bell. A thread that is about to sleep joins first and then checks the
//! list under the lock. The critical section that comes second sees what the other thread did.
//! Without the lock, the addition could become visible only after the check, and neither thread
//! would see the other. `tests/loom/sleepers.rs` tries every interleaving.

use crate::crowd::{Crowd, Ticket};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// The threads of this process that sleep in one set, and their bell.
#[derive(Debug)]
pub struct Sleepers {
    asleep: Crowd,
    /// Name of the bell; 0 while the set has none.
    bell: AtomicU64,
    /// 1 once something other than a thread in the set polls the bell.
    latched: AtomicU32,
}

impl Sleepers {
    #[cfg(loom)]
    /// The sleepers of a fresh set, for the model checker.
    pub fn model() -> Self {
        Self {
            asleep: Crowd::model(),
            bell: AtomicU64::new(0),
            latched: AtomicU32::new(0),
        }
    }

    /// Removes all threads and the bell, for a record whose set begins or has ended.
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

    /// Counts the caller as asleep. Before it sleeps it must check the list, or, while the set has
    /// no bell, check for a bell.
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

    /// Name of the bell, once there is one.
    pub fn bell(&self) -> Option<u64> {
        Some(self.bell.load(Ordering::SeqCst)).filter(|name| *name != 0)
    }

    /// Sets the bell, which rings from here on. The caller is about to add the set's first entry.
    pub fn hang_bell(&self, name: u64) {
        self.bell.store(name, Ordering::SeqCst);
    }

    /// Makes the bell ring for every entry from here on. True if it did so before.
    pub fn latch(&self) -> bool {
        self.latched.swap(1, Ordering::SeqCst) != 0
    }

    /// The bell to ring after an addition to the list, for a thread that still holds its lock.
    #[must_use]
    pub fn to_ring(&self, epoch: u32) -> Option<u64> {
        let watched = !self.are_none(epoch) || self.latched.load(Ordering::Relaxed) != 0;
        watched.then(|| self.bell()).flatten()
    }

    /// As [`to_ring`](Self::to_ring), for a thread that leaves the set, and was awake, so that no
    /// bell rang for it. It holds the lock; `has_events` returns whether it leaves an event behind.
    pub fn hand_over(&self, epoch: u32, has_events: impl FnOnce() -> bool) -> Option<u64> {
        self.to_ring(epoch).filter(|_| has_events())
    }
}
