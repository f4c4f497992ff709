//! Agreement on a slot: side 0 requests the slot for one connection, side 1 accepts.
//!
//! A proposal can arrive long after it was withdrawn, when its slot was requested for another
//! connection. So the word identifies the connection beside the state, and accepting names the
//! connection, too: two connections never get the same slot.

use crate::sync::{AtomicU64, Ordering};

/// Bits of the word that hold the state; the other bits identify the connection.
const STATE: u64 = 3;
const REQUESTED: u64 = 1;
const ACCEPTED: u64 = 2;
const CANCELLED: u64 = 3;

/// Identifies a connection by its two ends, [`key`](crate::tuple::Tuple::key).
type Key = [u8; 36];

/// State of one slot's agreement, in shared memory.
#[repr(C, align(128))]
pub struct Agreement {
    word: AtomicU64,
}

/// The bits that identify a connection: a hash of its key (FNV-1a, draft-eastlake-fnv).
fn connection(key: &Key) -> u64 {
    let hash = key.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash & !STATE
}

impl Agreement {
    #[cfg(loom)]
    /// A slot without an agreement for the model checker.
    pub fn model() -> Self {
        Self {
            word: AtomicU64::new(0),
        }
    }

    /// Requests the slot (side 0). All other words of the slot must be ready for the connection.
    pub fn request(&self, key: &Key) {
        let word = connection(key) | REQUESTED;
        self.word.store(word, Ordering::SeqCst);
    }

    /// Accepts the slot (side 1); false if it is not, or no longer, meant for this connection.
    #[must_use]
    pub fn accept(&self, key: &Key) -> bool {
        let asked = connection(key) | REQUESTED;
        let taken = connection(key) | ACCEPTED;
        self.word
            .compare_exchange(asked, taken, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    }

    /// Withdraws the request (side 0); false if it was accepted already.
    #[must_use]
    pub fn cancel(&self) -> bool {
        let word = self.word.load(Ordering::SeqCst);
        word & STATE == REQUESTED
            && self
                .word
                .compare_exchange(word, word | CANCELLED, Ordering::SeqCst, Ordering::SeqCst)
                .is_ok()
    }

    /// Whether side 1 has accepted the slot.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.word.load(Ordering::SeqCst) & STATE == ACCEPTED
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn fresh() -> Agreement {
        Agreement {
            word: AtomicU64::new(0),
        }
    }

    /// Keys that differ only in the port.
    fn key(port: u8) -> Key {
        let mut key = [7; 36];
        key[35] = port;
        key
    }

    #[test]
    fn a_request_is_accepted_once() {
        let slot = fresh();
        assert!(!slot.is_accepted() && !slot.accept(&key(1)) && !slot.cancel());
        slot.request(&key(1));
        assert!(!slot.is_accepted() && slot.accept(&key(1)) && slot.is_accepted());
        assert!(!slot.accept(&key(1)) && !slot.cancel() && slot.is_accepted());
    }

    #[test]
    fn a_withdrawn_proposal_received_late_does_not_take_another_connection_s_slot() {
        let slot = fresh();
        slot.request(&key(1));
        assert!(slot.cancel() && !slot.accept(&key(1)));
        slot.request(&key(2));
        assert!(!slot.accept(&key(1)) && !slot.is_accepted());
        assert!(slot.accept(&key(2)));
    }
}
