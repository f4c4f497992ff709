//! Wait slots: the words through which peers notify one epoll set or one blocked thread.
//!
//! The notifier sets the channel's bit in `ready`. If the waiter sleeps, the notifier wins the
//! right to ring its bell by clearing `sleeping`. So a sleep is ended by exactly one ring, and a
//! waiter that is awake costs its peers no system call. A [`WaitSlotSet`] says which wait slots are
//! to be notified of a channel's events.

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Shared words of one wait slot in one segment.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct WaitSlot {
    /// One bit per channel: it has an event.
    ready: AtomicU64,
    /// Name of the bell to ring.
    bell: AtomicU64,
    /// 1 while no thread polls `ready`.
    sleeping: AtomicU32,
    /// CPU of the thread that last rang the bell.
    rung_on: AtomicU32,
    /// When the bell was last rung (CPU time counter, ticks); 0: not since the sleep began.
    rung_at: AtomicU64,
}

impl WaitSlot {
    #[cfg(loom)]
    /// A fresh wait slot for the model checker.
    pub fn model() -> Self {
        Self {
            ready: AtomicU64::new(0),
            bell: AtomicU64::new(0),
            sleeping: AtomicU32::new(0),
            rung_on: AtomicU32::new(0),
            rung_at: AtomicU64::new(0),
        }
    }

    /// Takes the wait slot into use with the given bell.
    pub fn open(&self, bell: u64) {
        self.sleeping.store(0, Ordering::Relaxed);
        self.ready.store(0, Ordering::Relaxed);
        self.bell.store(bell, Ordering::SeqCst);
    }

    /// Name of the bell that a notifier would ring; 0 before the first use.
    pub fn bell(&self) -> u64 {
        self.bell.load(Ordering::Relaxed)
    }

    /// Sets the bit of channel `slot`. `Some(bell)`: the waiter sleeps and the caller must ring.
    #[must_use]
    pub fn notify(&self, slot: usize) -> Option<u64> {
        self.ready.fetch_or(1 << slot, Ordering::SeqCst);
        let wake = self.sleeping.load(Ordering::SeqCst) != 0
            && self.sleeping.swap(0, Ordering::SeqCst) != 0;
        wake.then(|| self.bell())
    }

    /// Stores when and on which CPU the bell is rung: a hint from which the sleeper learns the cost
    /// of a wake-up.
    pub fn note_ring(&self, at: u64, cpu: u32) {
        self.rung_on.store(cpu, Ordering::Relaxed);
        self.rung_at.store(at, Ordering::Release); // With the CPU.
    }

    /// When and on which CPU the bell was rung since the sleep began, as the ringer claims.
    pub fn rung(&self) -> Option<(u64, u32)> {
        let at = self.rung_at.load(Ordering::Acquire);
        (at != 0).then(|| (at, self.rung_on.load(Ordering::Relaxed)))
    }

    /// Whether any channel has an event; a plain load for spinning.
    pub fn has_events(&self) -> bool {
        self.ready.load(Ordering::Relaxed) != 0
    }

    /// Takes the bits of all channels with events.
    pub fn take(&self) -> u64 {
        if self.ready.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        self.ready.swap(0, Ordering::SeqCst)
    }

    /// Announces a sleep; true when there is an event already and the caller must not sleep.
    pub fn sleep(&self) -> bool {
        self.rung_at.store(0, Ordering::Relaxed);
        self.sleeping.store(1, Ordering::SeqCst);
        self.ready.load(Ordering::SeqCst) != 0
    }

    /// Ends the announced sleep; later events cost no ring.
    pub fn wake(&self) {
        if self.sleeping.load(Ordering::Relaxed) != 0 {
            self.sleeping.store(0, Ordering::SeqCst);
        }
    }
}

/// The wait slots of one side that watch a ring, as bits.
///
/// A waiter enters its wait slot and then arms the ring; a writer takes the request and then looks
/// here. So either the writer finds the wait slot, or the waiter finds what was written.
#[repr(transparent)]
#[derive(Debug)]
pub struct WaitSlotSet(AtomicU64);

impl WaitSlotSet {
    #[cfg(loom)]
    /// An empty set for the model checker.
    pub fn model() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Removes all wait slots, before the channel is used.
    pub fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Adds the wait slot with this index.
    pub fn enter(&self, index: usize) {
        self.0.fetch_or(1 << (index % 64), Ordering::SeqCst);
    }

    /// Removes the wait slot with this index.
    pub fn leave(&self, index: usize) {
        self.0.fetch_and(!(1 << (index % 64)), Ordering::SeqCst);
    }

    /// A bit for each wait slot in the set.
    pub fn bits(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}
