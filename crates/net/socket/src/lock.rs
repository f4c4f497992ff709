//! A lock for memory that is private to the process, safe to use inside any program.
//!
//! Holders are short and never sleep, so waiters spin, then yield. A lock held by a thread when the
//! process forked counts as free in the child. A signal handler that finds the lock held by its
//! own thread gets `None` instead of hanging.

use crate::fork::CHANGED;
use core::sync::atomic::Ordering;
use saiga_channel::lock_word::LockWord;

/// The lock word: 0 when free, else the epoch above the holder's thread id.
#[derive(Debug)]
pub(crate) struct Lock(LockWord);

/// Holds a [`Lock`]; releases it when dropped.
#[derive(Debug)]
pub(crate) struct Guard<'a>(&'a Lock);

/// Starts a new epoch in a forked child: every inherited lock is free.
pub(crate) fn forked() {
    CHANGED.epoch.fetch_add(1, Ordering::SeqCst);
}

pub(crate) fn epoch() -> u32 {
    CHANGED.epoch.load(Ordering::Relaxed)
}

impl Lock {
    pub(crate) const fn new() -> Self {
        Self(LockWord::new())
    }

    /// Takes the lock; `None` when this very thread holds it (this is a signal handler).
    pub(crate) fn lock(&self) -> Option<Guard<'_>> {
        let mine = me();
        let mut spins = 0u32;
        loop {
            let now = self.0.holder();
            if now == mine {
                return None;
            }
            if self.take(now, mine) {
                return Some(Guard(self));
            }
            spins += 1;
            if spins.is_multiple_of(128) {
                saiga_channel::sys::yield_cpu();
            } else {
                core::hint::spin_loop();
            }
        }
    }

    /// Whether the calling thread holds it: then this is a signal handler above the holder.
    pub(crate) fn is_mine(&self) -> bool {
        self.0.holder() == me()
    }

    /// Takes the lock if no thread has it.
    pub(crate) fn try_lock(&self) -> Option<Guard<'_>> {
        let now = self.0.holder();
        // Not `then_some`: it would make the guard in any case, and dropping that one would free
        // the lock under its holder.
        self.take(now, me()).then(|| Guard(self))
    }

    fn take(&self, now: u64, mine: u64) -> bool {
        let free = now == 0 || now >> 32 != mine >> 32;
        free && self.0.take(now, mine)
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.0.free();
    }
}

fn me() -> u64 {
    (u64::from(epoch()) << 32) | u64::from(crate::thread::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_attempt_leaves_the_lock_to_its_holder() {
        let lock = Lock::new();
        let held = lock.try_lock();
        assert!(held.is_some());
        assert!(lock.try_lock().is_none(), "taken twice by the holder");
        std::thread::scope(|s| {
            for _ in 0..2 {
                let other = s.spawn(|| lock.try_lock().is_none());
                assert!(other.join().expect("the thread does not panic"));
            }
        });
        assert!(lock.is_mine());
        drop(held);
        assert!(!lock.is_mine() && lock.try_lock().is_some());
    }
}
