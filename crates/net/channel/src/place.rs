//! A waiting place: where one epoll set or one blocked thread is told of news.
//!
//! The teller sets the channel's bit in `ready`; if the place sleeps, it wins the
//! right to ring its bell by clearing `sleeping`. So a sleep is ended by exactly one
//! ring, and a place that is awake costs its peers no system call.

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Shared words of one waiting place in one segment.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Place {
    /// Bit per slot: something changed there.
    ready: AtomicU64,
    /// Name of the bell to ring.
    bell: AtomicU64,
    /// 1 while no thread looks at `ready`.
    sleeping: AtomicU32,
    /// CPU of the thread that rang the bell last.
    rung_on: AtomicU32,
    /// When the bell was rung last, by the CPU's time counter; 0: not since the sleep began.
    rung_at: AtomicU64,
}

impl Place {
    #[cfg(loom)]
    /// A fresh place for the model checker.
    pub fn model() -> Self {
        Self {
            ready: AtomicU64::new(0),
            bell: AtomicU64::new(0),
            sleeping: AtomicU32::new(0),
            rung_on: AtomicU32::new(0),
            rung_at: AtomicU64::new(0),
        }
    }

    /// Takes the place into use with the given bell.
    pub fn open(&self, bell: u64) {
        self.sleeping.store(0, Ordering::Relaxed);
        self.ready.store(0, Ordering::Relaxed);
        self.bell.store(bell, Ordering::SeqCst);
    }

    /// Name of the bell that a teller would ring; 0 before the place's first use.
    pub fn bell(&self) -> u64 {
        self.bell.load(Ordering::Relaxed)
    }

    /// Says that `slot` has news. `Some(bell)`: the place sleeps and the caller must ring.
    #[must_use]
    pub fn tell(&self, slot: usize) -> Option<u64> {
        self.ready.fetch_or(1 << slot, Ordering::SeqCst);
        let wake = self.sleeping.load(Ordering::SeqCst) != 0
            && self.sleeping.swap(0, Ordering::SeqCst) != 0;
        wake.then(|| self.bell())
    }

    /// Notes when and on which CPU the bell is rung: a hint for the sleeper, who learns from it
    /// what a wake-up costs.
    pub fn note_ring(&self, at: u64, cpu: u32) {
        self.rung_on.store(cpu, Ordering::Relaxed);
        self.rung_at.store(at, Ordering::Relaxed);
    }

    /// When and on which CPU the bell was rung since the sleep began, as the ringer says.
    pub fn rung(&self) -> Option<(u64, u32)> {
        let at = self.rung_at.load(Ordering::Relaxed);
        (at != 0).then(|| (at, self.rung_on.load(Ordering::Relaxed)))
    }

    /// Whether any slot has news; a plain load for spinning.
    pub fn has_news(&self) -> bool {
        self.ready.load(Ordering::Relaxed) != 0
    }

    /// Takes the bits of all slots with news.
    pub fn take(&self) -> u64 {
        if self.ready.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        self.ready.swap(0, Ordering::SeqCst)
    }

    /// Announces sleep; true when there is news already and the caller must not sleep.
    pub fn sleep(&self) -> bool {
        self.rung_at.store(0, Ordering::Relaxed);
        self.sleeping.store(1, Ordering::SeqCst);
        self.ready.load(Ordering::SeqCst) != 0
    }

    /// Ends the announced sleep; later news costs no ring.
    pub fn wake(&self) {
        if self.sleeping.load(Ordering::Relaxed) != 0 {
            self.sleeping.store(0, Ordering::SeqCst);
        }
    }
}
