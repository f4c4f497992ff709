//! How many threads of this process are inside something.
//!
//! A forked child has none of its parent's threads, so the count carries the fork epoch in
//! which it holds; in a later one it is zero.

use crate::lock;
use core::sync::atomic::{AtomicU64, Ordering};

/// The count, and the fork epoch above it.
#[derive(Debug)]
pub(crate) struct Crowd(AtomicU64);

/// What `join` returns and `part` takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticket {
    epoch: u32,
}

impl Ticket {
    /// The ticket of a thread that came in in that fork epoch.
    pub(crate) fn of(epoch: u32) -> Ticket {
        Ticket { epoch }
    }

    /// The fork epoch in which its thread came in.
    pub(crate) fn epoch(self) -> u32 {
        self.epoch
    }
}

impl Crowd {
    /// Sets the count to zero, for an entry that is used anew.
    pub(super) fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Counts the calling thread.
    pub(crate) fn join(&self) -> Ticket {
        let epoch = lock::epoch();
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

    /// Counts the calling thread no longer, unless it came in before a fork and is the child's.
    pub(crate) fn part(&self, ticket: Ticket) {
        if ticket.epoch == lock::epoch() {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Whether no thread of this process is inside.
    pub(crate) fn is_empty(&self) -> bool {
        let now = self.0.load(Ordering::SeqCst);
        now & u64::from(u32::MAX) == 0 || now >> 32 != u64::from(lock::epoch())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_another_epoch_do_not_count() {
        let crowd = Crowd(AtomicU64::new(0));
        assert!(crowd.is_empty());
        let (one, two) = (crowd.join(), crowd.join());
        crowd.part(one);
        assert!(!crowd.is_empty());
        crowd.part(two);
        assert!(crowd.is_empty());

        let parents = u64::from(lock::epoch().wrapping_sub(1)) << 32 | 2;
        crowd.0.store(parents, Ordering::Relaxed);
        assert!(crowd.is_empty(), "two threads of the parent's");
        crowd.part(Ticket {
            epoch: lock::epoch().wrapping_sub(1),
        });
        let own = crowd.join();
        assert!(!crowd.is_empty());
        crowd.part(own);
        assert!(crowd.is_empty());
    }
}
