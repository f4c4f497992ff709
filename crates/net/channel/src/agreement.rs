//! Agreement on a slot: side 0 requests it for one connection, side 1 accepts.
//!
//! A proposal can be heard long after it was withdrawn, when its slot has been requested
//! for another connection. So the word names the connection beside the state, and who
//! accepts says which one it means: two connections never get the same slot.

use core::sync::atomic::{AtomicU64, Ordering};

/// Bits of the word that hold the state; the rest is the connection's.
const STATE: u64 = 3;
const REQUESTED: u64 = 1;
const ACCEPTED: u64 = 2;
const CANCELLED: u64 = 3;

/// A connection by its two ends, [`key`](crate::tuple::Tuple::key).
type Key = [u8; 36];

/// The word of one slot.
#[repr(C, align(128))]
pub struct Agreement {
    word: AtomicU64,
}

/// The connection's part of the word (FNV-1a, draft-eastlake-fnv).
fn connection(key: &Key) -> u64 {
    let hash = key.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash & !STATE
}

impl Agreement {
    /// Side 0 asks for the slot. All its other words are ready for the connection.
    pub fn request(&self, key: &Key) {
        let word = connection(key) | REQUESTED;
        self.word.store(word, Ordering::SeqCst);
    }

    /// Side 1 takes it; false when it is not, or no longer, meant for this connection.
    #[must_use]
    pub fn accept(&self, key: &Key) -> bool {
        let asked = connection(key) | REQUESTED;
        let taken = connection(key) | ACCEPTED;
        self.word
            .compare_exchange(asked, taken, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    }

    /// Side 0 gives up before an answer; false when there is one.
    #[must_use]
    pub fn cancel(&self) -> bool {
        let word = self.word.load(Ordering::SeqCst);
        word & STATE == REQUESTED
            && self
                .word
                .compare_exchange(word, word | CANCELLED, Ordering::SeqCst, Ordering::SeqCst)
                .is_ok()
    }

    /// Whether side 1 has taken the slot.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.word.load(Ordering::SeqCst) & STATE == ACCEPTED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh() -> Agreement {
        Agreement {
            word: AtomicU64::new(0),
        }
    }

    /// Keys that differ in the port alone.
    fn key(port: u8) -> Key {
        let mut key = [7; 36];
        key[35] = port;
        key
    }

    #[test]
    fn what_is_requested_is_accepted_once() {
        let slot = fresh();
        assert!(!slot.is_accepted() && !slot.accept(&key(1)) && !slot.cancel());
        slot.request(&key(1));
        assert!(!slot.is_accepted() && slot.accept(&key(1)) && slot.is_accepted());
        assert!(!slot.accept(&key(1)) && !slot.cancel() && slot.is_accepted());
    }

    #[test]
    fn a_withdrawn_proposal_heard_late_takes_nobody_else_s_slot() {
        let slot = fresh();
        slot.request(&key(1));
        assert!(slot.cancel() && !slot.accept(&key(1)));
        slot.request(&key(2));
        assert!(!slot.accept(&key(1)) && !slot.is_accepted());
        assert!(slot.accept(&key(2)));
    }
}
