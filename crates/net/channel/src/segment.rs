//! A segment in this process: a sealed memfd, mapped, and this side's private words.
//!
//! Sizes and offsets come from constants, never from shared memory. The memfd is sealed against
//! shrinking, growing and further seals before it is sent, and the seals are checked on receipt. A
//! ring's memory is allocated before it is used, so a lack of memory is an error here and not
//! SIGBUS later. Of the mapping, only the header and the slots up to the highest in use are
//! accessible, so mlockall(2) makes only those resident.

#![expect(unsafe_code, reason = "shared memory")]

use crate::barriers;
use crate::bus_error::Watch;
use crate::layout::{
    DATA_AT, HEADER_BYTES, Header, SEGMENT_BYTES, START_SHIFT, STRIDE_SHIFT, Side, Slot, SlotIndex,
    data_at,
};
use crate::own::block::{self, Block};
use crate::own::{Own, OwnSlot};
use crate::ring::Storage;
use crate::sys::{self, Errno, Fd, Sys};
use crate::wait_slot::WaitSlot;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

const SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// A segment that this process has mapped, with its memfd and private words.
#[derive(Debug)]
pub struct Segment {
    at: NonNull<u8>,
    /// Memory of this process and its forks; the peer does not have it.
    own: NonNull<Own>,
    own_block: &'static Block,
    fd: AtomicI32,
    /// Number of slots whose rings are accessible in this process.
    open_slots: AtomicUsize,
    watch: Watch,
    /// The end of the segment that this process is.
    pub side: Side,
}

// SAFETY: a segment is shared memory in which every word is atomic, plus plain numbers.
unsafe impl Send for Segment {}
// SAFETY: as above; ring bytes are guarded by the cursors.
unsafe impl Sync for Segment {}

impl Segment {
    /// Makes a new segment; this process is side 0. The descriptor is moved to `floor` or above.
    ///
    /// # Errors
    /// EFBIG if the process may not make files of that size; else the errors of `memfd_create`,
    /// `ftruncate`, `fcntl` or `mmap` (EMFILE, ENOMEM, ...).
    pub fn create(floor: usize) -> Sys<Segment> {
        let fd = sys::move_up(sys::memfd(c"saiga-segment", SEGMENT_BYTES)?, floor)?;
        let made = prepare(fd).and_then(|()| Self::map(fd, Side(0)));
        match made {
            Ok(segment) => {
                segment
                    .header()
                    .identity
                    .id
                    .store(sys::random() | 1, Ordering::Relaxed);
                Ok(segment)
            }
            Err(e) => {
                sys::close(fd);
                Err(e)
            }
        }
    }

    /// Maps a segment that a peer made; this process is side 1. Takes ownership of `fd`.
    ///
    /// # Errors
    /// EPERM if the memfd lacks a seal or has another size; else the errors of `mmap`.
    pub fn adopt(fd: Fd, floor: usize) -> Sys<Segment> {
        let fd = sys::move_up(fd, floor)?;
        let checked = match (sys::fcntl(fd, libc::F_GET_SEALS, 0), sys::file_size(fd)) {
            (Ok(seals), Ok(SEGMENT_BYTES)) if seals & SEALS == SEALS => Self::map(fd, Side(1)),
            _ => Err(Errno(libc::EPERM)),
        };
        if checked.is_err() {
            sys::close(fd);
        }
        checked
    }

    pub(crate) fn map(fd: Fd, side: Side) -> Sys<Segment> {
        let (own, own_block) = block::take()?;
        let mapped = sys::reserve_shared(fd, SEGMENT_BYTES).and_then(|at| {
            // SAFETY: the header is the first part of what was just reserved.
            unsafe { sys::make_accessible(at, DATA_AT) }.map(|()| at)
        });
        let mapped = mapped.and_then(|at| NonNull::new(at.cast()).ok_or(Errno(libc::ENOMEM)));
        if let Ok(at) = mapped {
            let segment = Segment {
                at,
                own,
                own_block,
                fd: AtomicI32::new(fd),
                open_slots: AtomicUsize::new(0),
                watch: Watch::begin(at.as_ptr()),
                side,
            };
            let joined = &segment.header().identity.joined[side.0];
            joined.store(u32::from(barriers::joined()), Ordering::Relaxed);
            return Ok(segment);
        }
        own_block.leave();
        Err(mapped.err().unwrap_or(Errno(libc::ENOMEM)))
    }

    /// Makes the rings of a slot accessible, and those of the slots before it, before any access to
    /// their bytes. A range with one border takes two of the process's mappings, however many slots
    /// are in use.
    ///
    /// # Errors
    /// ENOMEM if the process can have no more mappings.
    pub fn open_slot(&self, slot: SlotIndex) -> Sys<()> {
        let (slot, open) = (slot.get(), self.open_slots.load(Ordering::Acquire));
        if slot < open {
            return Ok(());
        }
        let (from, to) = (data_at(open, 0), data_at(slot + 1, 0));
        // SAFETY: both offsets lie in the mapping, by the layout.
        let at = unsafe { self.at.as_ptr().add(from) };
        // SAFETY: the part of the mapping that is not accessible yet, by `open_slots`.
        unsafe { sys::make_accessible(at.cast(), to - from) }?;
        self.open_slots.fetch_max(slot + 1, Ordering::AcqRel);
        Ok(())
    }

    /// Unmaps the segment and closes its descriptor.
    ///
    /// # Safety
    /// No slot, wait slot or storage of this segment is used any more.
    pub unsafe fn release(self) {
        self.watch.end();
        // SAFETY: promised by our caller.
        unsafe { sys::unmap(self.at.as_ptr().cast(), SEGMENT_BYTES) };
        self.own_block.leave();
        sys::close(self.fd());
    }

    /// Descriptor of the memfd.
    #[must_use]
    pub fn fd(&self) -> Fd {
        self.fd.load(Ordering::Relaxed)
    }

    /// The word with the number of the descriptor.
    #[must_use]
    pub fn fd_holder(&self) -> &AtomicI32 {
        &self.fd
    }

    /// Whether some of its memory was missing and was replaced ([`crate::bus_error`]). Its
    /// connections are reset at their next use.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.watch.is_damaged()
    }

    fn header(&self) -> &Header {
        // SAFETY: the mapping is page-aligned, `DATA_AT` bytes exist (sealed size) and the header
        // holds only atomics and bytes, valid for any content.
        unsafe { self.at.cast::<Header>().as_ref() }
    }

    /// Random id of the segment.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.header().identity.id.load(Ordering::Relaxed)
    }

    /// A channel's shared words.
    #[must_use]
    pub fn slot(&self, index: SlotIndex) -> &Slot {
        &self.header().slots[index.get()]
    }

    fn own(&self) -> &Own {
        // SAFETY: mapped for the segment's life, zeroed at first; atomics, valid for any content.
        unsafe { self.own.as_ref() }
    }

    /// This side's private words about a slot.
    #[must_use]
    pub fn own_slot(&self, index: SlotIndex) -> &OwnSlot {
        &self.own().slots[index.get()]
    }

    /// A wait slot of `side`; `index` is taken modulo their number.
    #[must_use]
    pub fn wait_slot(&self, side: Side, index: usize) -> &WaitSlot {
        &self.header().wait_slots[side.0][index % crate::layout::WAIT_SLOTS]
    }

    /// Publishes that a thread of ours had a CPU at `at` (ticks of the time counter).
    pub fn note_turn(&self, at: u64) {
        let turns = &self.header().identity.turns;
        turns[self.side.0].at.store(at, Ordering::Relaxed);
    }

    /// When a thread of the peer last had a CPU, as the peer claims.
    #[must_use]
    pub fn peer_turn(&self) -> u64 {
        let turns = &self.header().identity.turns;
        turns[self.side.peer().0].at.load(Ordering::Relaxed)
    }

    /// Whether the peer claims to take part in barriers. A peer that lies loses events of its own
    /// stream and harms no other connection.
    #[must_use]
    pub fn peer_has_joined(&self) -> bool {
        let joined = &self.header().identity.joined;
        joined[self.side.peer().0].load(Ordering::Relaxed) != 0
    }

    /// Publishes when we last used TCP (ticks of the time counter). Before [`WaitSlot::notify`].
    pub fn note_by_tcp(&self, at: u64) {
        let word = &self.header().identity.by_tcp[self.side.0].at;
        if word.load(Ordering::Relaxed) != at {
            word.store(at, Ordering::Relaxed);
        }
    }

    /// When the peer last used TCP, as the peer claims. After [`WaitSlot::take`].
    #[must_use]
    pub fn peer_by_tcp(&self) -> u64 {
        let side = self.side.peer().0;
        self.header().identity.by_tcp[side]
            .at
            .load(Ordering::Relaxed)
    }

    /// Publishes that we notify of a channel's event at `at` (ticks of the time counter).
    pub fn note_wakeup(&self, slot: SlotIndex, at: u64) {
        let times = &self.header().identity.woken_at[self.side.0];
        times.at[slot.get()].store(at, Ordering::Relaxed);
    }

    /// When the peer last notified of a channel's event, as the peer claims.
    #[must_use]
    pub fn peer_wakeup_at(&self, slot: SlotIndex) -> u64 {
        let times = &self.header().identity.woken_at[self.side.peer().0];
        times.at[slot.get()].load(Ordering::Relaxed)
    }

    /// Claims a free wait slot of our side.
    #[must_use]
    pub fn claim_wait_slot(&self, bell: u64) -> Option<usize> {
        let used = &self.own().wait_slots_used;
        loop {
            let now = used.load(Ordering::Relaxed);
            let free = (!now).trailing_zeros();
            if free >= 64 {
                return None;
            }
            let claimed =
                used.compare_exchange(now, now | (1 << free), Ordering::SeqCst, Ordering::Relaxed);
            if claimed.is_ok() {
                let index = free as usize;
                self.wait_slot(self.side, index).open(bell);
                return Some(index);
            }
        }
    }

    /// Releases a wait slot of our side. A late ring on it is a spurious wake-up.
    pub fn release_wait_slot(&self, index: usize) {
        let used = &self.own().wait_slots_used;
        used.fetch_and(!(1 << (index % 64)), Ordering::SeqCst);
    }

    /// The bytes of ring `ring` of slot `slot`; the ring may grow to `1 << limit` bytes.
    #[must_use]
    pub fn bytes(&self, slot: SlotIndex, ring: usize, limit: u32) -> RingBytes<'_> {
        RingBytes {
            segment: self,
            at: data_at(slot.get(), ring),
            limit: limit.min(STRIDE_SHIFT),
        }
    }

    /// Allocates the first capacity of both rings of a slot.
    ///
    /// # Errors
    /// ENOSPC or ENOMEM when memory is short.
    pub fn populate_start(&self, slot: SlotIndex) -> Sys<()> {
        sys::fallocate(self.fd(), 0, data_at(slot.get(), 0), 1 << START_SHIFT)?;
        sys::fallocate(self.fd(), 0, data_at(slot.get(), 1), 1 << START_SHIFT)
    }

    /// Releases the memory of both rings of an unused slot.
    pub fn depopulate(&self, slot: SlotIndex) {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let _ = sys::fallocate(self.fd(), mode, data_at(slot.get(), 0), 2 << STRIDE_SHIFT);
    }
}

/// Prepares an untouched memfd as a segment: header memory, seals. Allocation within the size of
/// the file is not subject to the limit on file sizes.
fn prepare(fd: Fd) -> Sys<()> {
    sys::fallocate(fd, 0, 0, HEADER_BYTES)?;
    sys::fcntl(fd, libc::F_ADD_SEALS, sys::reg(SEALS)).map(drop)
}

/// The bytes of one ring.
#[derive(Debug, Clone, Copy)]
pub struct RingBytes<'a> {
    segment: &'a Segment,
    at: usize,
    limit: u32,
}

impl RingBytes<'_> {
    /// Allocates `1 << shift` bytes; false when memory is short.
    #[must_use]
    pub fn populate(&self, shift: u32) -> bool {
        let shift = shift.min(STRIDE_SHIFT);
        sys::fallocate(self.segment.fd(), 0, self.at, 1 << shift).is_ok()
    }

    /// Releases all of the ring's memory. Later reads find zeros there.
    pub fn depopulate(&self) {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let _ = sys::fallocate(self.segment.fd(), mode, self.at, 1 << STRIDE_SHIFT);
    }

    /// Address of `offset`, if `len` bytes from there lie inside the ring.
    fn address(&self, offset: usize, len: usize) -> Option<*mut u8> {
        let inside = offset
            .checked_add(len)
            .is_some_and(|end| end <= 1 << STRIDE_SHIFT);
        // SAFETY: `at + offset + len` lies inside the mapping by the line above and the layout.
        inside.then(|| unsafe { self.segment.at.as_ptr().add(self.at + offset) })
    }
}

impl Storage for RingBytes<'_> {
    fn max_shift(&self) -> u32 {
        STRIDE_SHIFT
    }
    fn limit(&self) -> u32 {
        self.limit
    }
    fn put(&self, offset: usize, bytes: &[u8]) {
        if let Some(to) = self.address(offset, bytes.len()) {
            // SAFETY: `to` is writable for the length; the peer may read it at the same time, which
            // can only garble bytes that are not published yet.
            unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        }
    }
    fn take(&self, offset: usize, bytes: &mut [u8]) {
        if let Some(from) = self.address(offset, bytes.len()) {
            // SAFETY: `from` is readable for the length; an honest peer does not write there.
            unsafe { core::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) };
        }
    }
}
