//! Locks, modes and counts of a segment's slots that one side keeps where the peer cannot write.
//!
//! After a fork, parent and child have the same connection. So these words are in memory that
//! forked processes share, like the kernel's open file description. The peer does not have that
//! memory: it cannot make a thread wait for a lock that is not held, or move a direction between
//! TCP and the ring.

pub(crate) mod block;

pub use block::retire;

use crate::direction::{RxEvent, RxMode, TxEvent, TxMode};
use crate::layout::{OPEN_CLOSED, OPEN_MAPPED, OPEN_UNUSED, SLOTS};
use crate::lock_word::LockWord;
use crate::state::StateCell;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// This side's private words of one slot.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct OwnSlot {
    /// Held by the thread that is sending, by its id.
    pub tx_lock: LockWord,
    /// Held by the thread that is receiving, by its id.
    pub rx_lock: LockWord,
    /// Where received bytes come from.
    pub rx_mode: StateCell<RxMode>,
    /// Where sent bytes go.
    pub tx_mode: StateCell<TxMode>,
    /// Bytes still to be read from TCP before the ring.
    pub rx_remaining: AtomicU64,
    /// Wait slots of the peer that single messages made us wake, beyond a few each.
    pub extra_wakeups: AtomicU32,
    /// The value that we published in [`SideBlock::open`](crate::layout::SideBlock::open).
    open: AtomicU32,
    /// 1 while a connection of this side uses the slot.
    in_use: AtomicU32,
}

impl OwnSlot {
    /// Resets the words for a new connection, both of whose directions begin on TCP.
    pub fn begin(&self) {
        let Self {
            tx_lock,
            rx_lock,
            rx_mode,
            tx_mode,
            rx_remaining,
            extra_wakeups,
            open,
            in_use,
        } = self;
        tx_lock.free();
        rx_lock.free();
        rx_mode.transition(RxEvent::Open);
        tx_mode.transition(TxEvent::Open);
        rx_remaining.store(0, Ordering::Relaxed);
        extra_wakeups.store(0, Ordering::Relaxed);
        open.store(OPEN_UNUSED, Ordering::Relaxed);
        in_use.store(1, Ordering::SeqCst);
    }

    /// Claims the slot for a connection that the peer has proposed; false if another connection of
    /// this side uses it, which no honest peer proposes.
    #[must_use]
    pub fn claim(&self) -> bool {
        self.in_use.swap(1, Ordering::SeqCst) == 0
    }

    /// Releases the slot without publishing it to the peer.
    pub fn unclaim(&self) {
        self.in_use.store(0, Ordering::SeqCst);
    }

    /// Records that our end uses the channel.
    pub fn note_open(&self) {
        self.open.store(OPEN_MAPPED, Ordering::SeqCst);
    }

    /// Records that our end never touches the channel again.
    pub fn note_closed(&self) {
        self.open.store(OPEN_CLOSED, Ordering::SeqCst);
    }

    /// Whether our end uses the channel.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::SeqCst) == OPEN_MAPPED
    }

    /// Whether our end has left the channel for good.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.open.load(Ordering::SeqCst) == OPEN_CLOSED
    }
}

/// This side's private words of one segment.
#[repr(C)]
#[derive(Debug)]
pub struct Own {
    /// Indexed like the slots of the segment.
    pub slots: [OwnSlot; SLOTS],
    /// Bits of our wait slots that are in use.
    pub wait_slots_used: AtomicU64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_claimed_by_one_connection_at_a_time() {
        let at = crate::sys::map_shared(size_of::<Own>()).expect("memory");
        #[expect(unsafe_code, reason = "zeroed memory, mapped for the life of the test")]
        // SAFETY: the mapping is large enough, zeroed and never unmapped.
        let own = unsafe { &*at.cast::<Own>() };
        let slot = &own.slots[3];
        assert!(slot.claim());
        assert!(!slot.claim());
        slot.begin();
        assert!(!slot.claim(), "a begun channel keeps its slot");
        slot.unclaim();
        assert!(slot.claim());
    }
}
