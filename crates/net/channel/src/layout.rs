//! The layout of a segment in memory: an identity, the wait slots of both sides, the connections'
//! slots, then the bytes of their rings.
//!
//! A segment belongs to two processes. Side 0 made it and allocates its slots; side 1 received it.
//! One slot is one channel; ring 0 carries bytes from side 0.
//!
//! Words of different writers lie on different lines of [`LINE`] bytes. Parts that get memory or
//! lose it separately, or become accessible separately, lie on different pages of [`LARGEST_PAGE`]
//! bytes: the header, and each ring. So one layout serves all sizes of the kernel's pages.

use crate::agreement::Agreement;
use crate::ring::Ring;
pub use crate::ring::{LARGEST_SHIFT as STRIDE_SHIFT, START_SHIFT};
use crate::wait_slot::{WaitSlot, WaitSlotSet};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// Version; changes with every change of the meaning of shared memory or messages.
pub const PROTOCOL: u32 = 5;
/// The largest page of any kernel: 64 KiB on Arm, where 4 and 16 KiB are as usual.
pub const LARGEST_PAGE: usize = 64 << 10;
/// The largest unit that moves between caches: 128 bytes on some processors for Arm, and on those
/// for x86-64 that fetch lines in pairs.
pub const LINE: usize = 128;
/// Channels in one segment; a wait slot's ready word has a bit for each.
pub const SLOTS: usize = 64;
/// Wait slots of one side in one segment.
pub const WAIT_SLOTS: usize = 64;

/// Number of a slot in its segment. Numbers from a peer become one only by a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotIndex(u8);

/// [`SLOTS`], a power of two, as the type of a slot's number.
const LIMIT: u8 = 64;
const _: () = assert!(LIMIT as usize == SLOTS && LIMIT.is_power_of_two());

impl SlotIndex {
    /// The first slot of every segment.
    pub const FIRST: SlotIndex = SlotIndex(0);

    /// The slot with this number; `None` if a segment has no such slot.
    #[must_use]
    pub fn new(number: u32) -> Option<SlotIndex> {
        let number = u8::try_from(number).ok()?;
        (usize::from(number) < SLOTS).then_some(SlotIndex(number))
    }

    /// All slots of a segment.
    pub fn all() -> impl Iterator<Item = SlotIndex> {
        (0..).map_while(SlotIndex::new)
    }

    /// The slot with a number that [`number`](Self::number) has given. Without a branch, because
    /// every call on a connection asks for its slot: a branch costs 4 % of Redis's throughput.
    #[must_use]
    pub fn stored(number: u32) -> SlotIndex {
        let [low, ..] = number.to_le_bytes();
        SlotIndex(low % LIMIT)
    }

    /// The number, below [`SLOTS`].
    #[must_use]
    pub fn get(self) -> usize {
        usize::from(self.0) % SLOTS // The compiler leaves out the checks of bounds.
    }

    /// The number in messages and in words that threads share.
    #[must_use]
    pub fn number(self) -> u32 {
        u32::from(self.0)
    }

    /// The slot's bit in a word with a bit for each slot.
    #[must_use]
    pub fn bit(self) -> u64 {
        1 << self.0
    }
}

/// One end of a segment: 0 made the segment, 1 received it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Side(pub usize);

impl Side {
    #[must_use]
    pub fn peer(self) -> Side {
        Side(1 - self.0)
    }
}

/// Identifies the segment.
#[repr(C, align(4096))]
pub struct Identity {
    /// Random id of the segment.
    pub id: AtomicU64,
    /// 1: the side takes part in barriers ([`crate::barriers`]).
    pub joined: [AtomicU32; 2],
    /// When a thread of each side last began to wait.
    pub turns: [LastRun; 2],
    /// When each side last used TCP.
    pub by_tcp: [LastTcpUse; 2],
    /// When each side last notified the other of channels' events.
    pub woken_at: [WakeupTimes; 2],
}

/// When a thread of a side last began to wait, by the CPU's time counter. On its own cache line,
/// because it is written at every wait and rarely read.
#[repr(C, align(128))]
pub struct LastRun {
    /// Ticks; 0: never.
    pub at: AtomicU64,
}

/// When a side last used the TCP of a connection that may get a channel, before it notified the
/// other side of a channel's event. On its own cache line, because it is read with all events and
/// rarely changes.
#[repr(C, align(128))]
pub struct LastTcpUse {
    /// Ticks of the CPU's time counter; 0: never.
    pub at: AtomicU64,
}

/// When a side last notified the other of a channel's event, by slot. On its own cache lines: the
/// notifier writes it each time, and it is read only if the order of several channels matters.
#[repr(C, align(128))]
pub struct WakeupTimes {
    /// Ticks of the CPU's time counter.
    pub at: [AtomicU64; SLOTS],
}

/// One side's published words about a channel. An honest other side only reads them. A side never
/// reads back here what its own decisions depend on ([`crate::own`]).
#[repr(C, align(128))]
pub struct SideBlock {
    /// The wait slots to notify of new bytes.
    pub rx_wait_slots: WaitSlotSet,
    /// The wait slots to notify of free space.
    pub tx_wait_slots: WaitSlotSet,
    /// CPU on which this side last published (a hint; u32::MAX: unknown).
    pub cpu: AtomicU32,
    /// [`OPEN_UNUSED`], [`OPEN_MAPPED`] or [`OPEN_CLOSED`].
    pub open: AtomicU32,
    /// 1 while a thread of this side is inside a receive.
    pub receiving: AtomicU32,
    /// 1 once this side sends by TCP again, behind the end of its ring.
    pub sends_tcp: AtomicU32,
}

/// The side has not answered yet.
pub const OPEN_UNUSED: u32 = 0;
/// The side uses the channel.
pub const OPEN_MAPPED: u32 = 1;
/// The side will never touch the channel again.
pub const OPEN_CLOSED: u32 = 2;

/// Shared words of one channel: its rings, both sides, and the agreement.
#[repr(C)]
pub struct Slot {
    /// Ring 0: from side 0 to side 1; ring 1: the opposite direction.
    pub rings: [Ring; 2],
    /// Each side's published words.
    pub sides: [SideBlock; 2],
    /// State of the two sides' agreement on the slot.
    pub agreement: Agreement,
    /// Space for extensions, which makes the size round.
    pub reserved: [u8; 128],
}

/// The part of a segment before the bytes of the rings.
#[repr(C)]
pub struct Header {
    pub identity: Identity,
    /// Wait slots, by side.
    pub wait_slots: [[WaitSlot; WAIT_SLOTS]; 2],
    /// One slot for each channel.
    pub slots: [Slot; SLOTS],
}

/// Size of the header. Only these bytes of a segment get memory when it is made.
pub const HEADER_BYTES: usize = size_of::<Header>();
/// Offset of the first ring's bytes.
pub const DATA_AT: usize = HEADER_BYTES.next_multiple_of(LARGEST_PAGE);
/// Size of a whole segment: room for each ring at its largest. Only accessed pages take memory.
pub const SEGMENT_BYTES: usize = DATA_AT + SLOTS * 2 * (1 << STRIDE_SHIFT);

/// Offset of the bytes of ring `ring` (0 or 1) of slot `slot`.
#[must_use]
pub fn data_at(slot: usize, ring: usize) -> usize {
    DATA_AT + (slot * 2 + ring) * (1 << STRIDE_SHIFT)
}

#[cfg(not(loom))]
const _: () = {
    assert!(size_of::<Identity>() == 4096);
    assert!(size_of::<WaitSlot>() == LINE && align_of::<WaitSlot>() == LINE);
    assert!(size_of::<SideBlock>() == LINE && align_of::<SideBlock>() == LINE);
    assert!(align_of::<LastRun>() == LINE && align_of::<LastTcpUse>() == LINE);
    assert!(align_of::<WakeupTimes>() == LINE);
    assert!(size_of::<Slot>() == 1024);
    assert!(core::mem::offset_of!(Header, wait_slots) == 4096);
    assert!(core::mem::offset_of!(Header, slots) == 4096 + 2 * WAIT_SLOTS * 128);
    assert!(HEADER_BYTES == 4096 + 2 * WAIT_SLOTS * 128 + SLOTS * 1024);
    assert!(DATA_AT == 2 * LARGEST_PAGE && (1usize << STRIDE_SHIFT).is_multiple_of(LARGEST_PAGE));
};
