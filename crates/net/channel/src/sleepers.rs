//! How threads that sleep in a set hear of what becomes ready there.
//!
//! A list of ready things changes under a lock. A thread that adds to it asks, under the same lock,
//! whether to ring the bell. A thread that is about to sleep joins first and then looks at the list
//! under the lock. Whichever section comes second sees what the other thread did: without the
//! lock, the addition could become visible only behind the question, and neither thread would see
//! the other. `tests/loom/sleepers.rs` tries every interleaving.

use crate::crowd::{Crowd, Ticket};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// The threads of this process that sleep in one set, and their bell.
#[derive(Debug)]
pub struct Sleepers {
    asleep: Crowd,
    /// Name of the bell; 0 while the set has none, as in its record before the first use.
    bell: AtomicU64,
    /// 1 once something that is not a thread in the set polls the bell.
    latched: AtomicU32,
}

impl Sleepers {
    #[cfg(loom)]
    /// Those of a fresh set for the model checker.
    pub fn model() -> Self {
        Self {
            asleep: Crowd::model(),
            bell: AtomicU64::new(0),
            latched: AtomicU32::new(0),
        }
    }

    /// There are neither threads nor a bell: for a record whose set begins or has ended.
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

    /// Counts the caller as asleep. Before it sleeps it looks at the list, or, while the set has no
    /// bell, whether it has one by now.
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

    /// The bell, once there is one.
    pub fn bell(&self) -> Option<u64> {
        Some(self.bell.load(Ordering::SeqCst)).filter(|name| *name != 0)
    }

    /// The bell rings from here on, and the set's first entry is about to be added.
    pub fn hang_bell(&self, name: u64) {
        self.bell.store(name, Ordering::SeqCst);
    }

    /// From here on the bell is to ring for every entry. True when it was so before.
    pub fn latch(&self) -> bool {
        self.latched.swap(1, Ordering::SeqCst) != 0
    }

    /// The bell to ring after an addition to the list, for a thread that still holds its lock.
    #[must_use]
    pub fn to_ring(&self, epoch: u32) -> Option<u64> {
        let watched = !self.are_none(epoch) || self.latched.load(Ordering::Relaxed) != 0;
        watched.then(|| self.bell()).flatten()
    }

    /// The same for a thread that leaves the set, which was awake and so was not rung for. It holds
    /// the lock; `has_news` says whether it leaves something behind.
    pub fn hand_over(&self, epoch: u32, has_news: impl FnOnce() -> bool) -> Option<u64> {
        self.to_ring(epoch).filter(|_| has_news())
    }
}
