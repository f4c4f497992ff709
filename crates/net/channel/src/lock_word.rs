//! The word of a lock whose holders are numbered: threads, or threads of several processes.
//!
//! The callers decide how long to wait, and whether a holder is dead.

use crate::sync::{AtomicU64, Ordering};

/// 0 while the lock is free, otherwise the number of its holder.
#[repr(transparent)]
#[derive(Debug)]
pub struct LockWord(AtomicU64);

impl LockWord {
    #[cfg(not(loom))]
    /// A free lock.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "only constants begin with one")]
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    #[cfg(loom)]
    /// A free lock for the model checker.
    pub fn model() -> Self {
        Self(AtomicU64::new(0))
    }

    /// The holder a moment ago; exact if the caller is the holder.
    pub fn holder(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Makes `holder` the holder if the word still is `now`; true if it was.
    pub fn take(&self, now: u64, holder: u64) -> bool {
        self.0
            .compare_exchange(now, holder, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Makes `holder` the holder of a lock that is free and that no other thread can reach.
    pub fn take_alone(&self, holder: u64) {
        self.0.store(holder, Ordering::Relaxed);
    }

    /// Frees the lock, for its holder.
    pub fn free(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// Frees the lock for a holder that has died, unless another thread has done so.
    pub fn free_for(&self, dead: u64) {
        let _ = self
            .0
            .compare_exchange(dead, 0, Ordering::AcqRel, Ordering::Relaxed);
    }
}
