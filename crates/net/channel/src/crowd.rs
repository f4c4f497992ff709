//! A count of threads of this process that are inside an operation.
//!
//! A forked child has none of its parent's threads. So the count carries the fork epoch in which it
//! holds; in a later epoch it is zero.

use crate::sync::{AtomicU64, Ordering};

/// The count in the low half, its fork epoch in the high half.
#[derive(Debug)]
pub struct Crowd(AtomicU64);

/// Returned by `join`, passed to `part`.
#[derive(Debug, Clone, Copy)]
pub struct Ticket {
    epoch: u32,
}

impl Ticket {
    /// The ticket of a thread that joined in a fork epoch.
    #[must_use]
    pub fn of(epoch: u32) -> Ticket {
        Ticket { epoch }
    }

    /// The fork epoch in which the thread joined.
    #[must_use]
    pub fn epoch(self) -> u32 {
        self.epoch
    }
}

impl Crowd {
    #[cfg(loom)]
    /// An empty count for the model checker.
    pub fn model() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Sets the count to zero, for a record that is reused.
    pub fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Counts the calling thread, of a process in this fork epoch.
    pub fn join(&self, epoch: u32) -> Ticket {
        let mut now = self.0.load(Ordering::Relaxed);
        while now >> 32 != u64::from(epoch) {
            let one = u64::from(epoch) << 32 | 1;
            let first = self
                .0
                .compare_exchange(now, one, Ordering::SeqCst, Ordering::Relaxed);
            match first {
                Ok(_) => return Ticket { epoch },
                Err(other) => now = other,
            }
        }
        self.0.fetch_add(1, Ordering::SeqCst);
        Ticket { epoch }
    }

    /// Stops counting the calling thread, unless it joined before a fork and is now the child's.
    pub fn part(&self, ticket: Ticket, epoch: u32) {
        if ticket.epoch == epoch {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Whether no thread of this process is inside.
    #[must_use]
    pub fn is_empty(&self, epoch: u32) -> bool {
        let now = self.0.load(Ordering::SeqCst);
        now & u64::from(u32::MAX) == 0 || now >> 32 != u64::from(epoch)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn threads_of_another_epoch_do_not_count() {
        let crowd = Crowd(AtomicU64::new(0));
        assert!(crowd.is_empty(1));
        let (one, two) = (crowd.join(1), crowd.join(1));
        crowd.part(one, 1);
        assert!(
            !crowd.is_empty(1) && crowd.is_empty(2),
            "a child has none of them"
        );
        crowd.part(two, 2);
        assert!(
            !crowd.is_empty(1),
            "in the child it returns from the same call"
        );
        crowd.part(two, 1);
        assert!(crowd.is_empty(1));

        crowd.join(1);
        let own = crowd.join(2);
        assert!(!crowd.is_empty(2));
        crowd.part(own, 2);
        assert!(crowd.is_empty(2));
    }
}
