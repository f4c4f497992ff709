//! The layout of the page: one header, then one entry per descriptor number.
//!
//! All fields are atomic, because another process reads while this process writes. Counters are
//! advisory: their accesses are relaxed, and no decision depends on them.

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::Release};

use crate::{Reason, State};

/// `"SAIGAST1"` in the byte order of a little-endian machine.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"SAIGAST1");
/// To be increased whenever a field moves or changes its meaning.
pub(crate) const VERSION: u32 = 1;
/// The memfd's name: `/proc/PID/fd/N` reads `/memfd:saiga-status (deleted)`.
pub(crate) const NAME: &core::ffi::CStr = c"saiga-status";
/// Descriptors with this number or a larger one have no entry.
pub const MAX_ENTRIES: u32 = 1 << 20;
/// Number of entries in 4 KiB, the unit in which entries are given memory.
pub(crate) const CHUNK_ENTRIES: u32 = 64;
const POPULATED_WORDS: usize = (MAX_ENTRIES / CHUNK_ENTRIES / 32) as usize;
const TEXT_BYTES: usize = 256;
const REASON_SLOTS: usize = 64;

/// Properties of the process, as the bits of [`Header::flags`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flags(pub u32);

impl Flags {
    /// New connections may be upgraded.
    pub const ENABLED: Self = Self(1);
    /// The process applied seccomp to itself; no further connection is upgraded.
    pub const SANDBOXED: Self = Self(1 << 1);
    /// The library was loaded under the name `liblstack.so`.
    pub const LSTACK: Self = Self(1 << 2);

    /// Returns true if all bits of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The first 4 KiB of the page.
#[repr(C, align(4096))]
#[derive(Debug)]
pub struct Header {
    pub(crate) magic: AtomicU64,
    pub(crate) version: AtomicU32,
    pub(crate) entry_bytes: AtomicU32,
    pub(crate) entries: AtomicU32,
    pub(crate) pid: AtomicU32,
    /// Clock ticks from boot to the start of the process, field 22 of `/proc/PID/stat`; 0 if
    /// `/proc` was not readable.
    pub(crate) started_ticks: AtomicU64,
    flags: AtomicU32,
    disabled: AtomicU32,
    text_bytes: AtomicU32,
    /// Cost of a wake-up from another CPU on this host; 0 until measured.
    pub wake_cost_ns: AtomicU32,
    text: [AtomicU8; TEXT_BYTES],
    /// Connections moved to a channel.
    pub upgrades: AtomicU64,
    /// Connections moved back to TCP.
    pub downgrades: AtomicU64,
    /// Connections that the library reset because neither path could carry further bytes.
    pub resets: AtomicU64,
    /// Waits that ended while spinning.
    pub spins: AtomicU64,
    /// Waits that slept in the kernel.
    pub sleeps: AtomicU64,
    /// Doorbells that this process rang.
    pub rings: AtomicU64,
    /// Segments of shared memory that the library holds now.
    pub segments: AtomicU64,
    /// Connections on a channel now.
    pub channels: AtomicU64,
    failures: [AtomicU64; REASON_SLOTS],
    populated: [AtomicU32; POPULATED_WORDS],
    taken_back: [AtomicU64; REASON_SLOTS],
    reset_for: [AtomicU64; REASON_SLOTS],
}

/// The state and counters of one descriptor.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Entry {
    state: AtomicU32,
    reason: AtomicU32,
    /// Bytes received by TCP since [`begin`](Self::begin).
    pub tcp_rx: AtomicU64,
    /// Bytes sent by TCP since [`begin`](Self::begin).
    pub tcp_tx: AtomicU64,
    /// Bytes received by the channel since [`begin`](Self::begin).
    pub channel_rx: AtomicU64,
    /// Bytes sent by the channel since [`begin`](Self::begin).
    pub channel_tx: AtomicU64,
    /// PID of the process at the other end; 0 while unknown.
    pub peer_pid: AtomicU32,
    generation: AtomicU32,
    /// Inode of the kernel socket; 0 if the library did not read the number.
    pub inode: AtomicU64,
    /// Messages counted as evidence.
    pub messages: AtomicU32,
    reserved: AtomicU32,
}

const _: () = {
    assert!(size_of::<Header>() == 4096);
    assert!(core::mem::offset_of!(Header, version) == 8);
    assert!(core::mem::offset_of!(Header, entry_bytes) == 12);
    assert!(core::mem::offset_of!(Header, entries) == 16);
    assert!(core::mem::offset_of!(Header, pid) == 20);
    assert!(core::mem::offset_of!(Header, started_ticks) == 24);
    assert!(core::mem::offset_of!(Header, flags) == 32);
    assert!(core::mem::offset_of!(Header, text) == 48);
    assert!(core::mem::offset_of!(Header, upgrades) == 304);
    assert!(core::mem::offset_of!(Header, failures) == 368);
    assert!(core::mem::offset_of!(Header, populated) == 880);
    assert!(core::mem::offset_of!(Header, taken_back) == 2928);
    assert!(core::mem::offset_of!(Header, reset_for) == 3440);
    assert!(Reason::COUNT <= REASON_SLOTS);
    assert!(size_of::<Entry>() == 64);
    assert!(align_of::<Entry>() == 64);
    assert!(core::mem::offset_of!(Entry, tcp_rx) == 8);
    assert!(core::mem::offset_of!(Entry, channel_tx) == 32);
    assert!(core::mem::offset_of!(Entry, peer_pid) == 40);
    assert!(core::mem::offset_of!(Entry, inode) == 48);
    assert!(core::mem::offset_of!(Entry, messages) == 56);
};

#[cfg(feature = "reader")]
impl Header {
    pub(crate) const FLAGS_AT: usize = core::mem::offset_of!(Self, flags);
    pub(crate) const DISABLED_AT: usize = core::mem::offset_of!(Self, disabled);
    pub(crate) const TEXT_BYTES_AT: usize = core::mem::offset_of!(Self, text_bytes);
    pub(crate) const TEXT_AT: usize = core::mem::offset_of!(Self, text);
    pub(crate) const TEXT_BYTES: usize = TEXT_BYTES;
    pub(crate) const FAILURES_AT: usize = core::mem::offset_of!(Self, failures);
    pub(crate) const TAKEN_BACK_AT: usize = core::mem::offset_of!(Self, taken_back);
    pub(crate) const RESET_FOR_AT: usize = core::mem::offset_of!(Self, reset_for);
}

#[cfg(feature = "reader")]
impl Entry {
    pub(crate) const STATE_AT: usize = core::mem::offset_of!(Self, state);
    pub(crate) const REASON_AT: usize = core::mem::offset_of!(Self, reason);
    pub(crate) const GENERATION_AT: usize = core::mem::offset_of!(Self, generation);
}

impl Header {
    pub(crate) const fn zeroed() -> Self {
        Self {
            magic: AtomicU64::new(0),
            version: AtomicU32::new(0),
            entry_bytes: AtomicU32::new(0),
            entries: AtomicU32::new(0),
            pid: AtomicU32::new(0),
            started_ticks: AtomicU64::new(0),
            flags: AtomicU32::new(0),
            disabled: AtomicU32::new(0),
            text_bytes: AtomicU32::new(0),
            wake_cost_ns: AtomicU32::new(0),
            text: [const { AtomicU8::new(0) }; TEXT_BYTES],
            upgrades: AtomicU64::new(0),
            downgrades: AtomicU64::new(0),
            resets: AtomicU64::new(0),
            spins: AtomicU64::new(0),
            sleeps: AtomicU64::new(0),
            rings: AtomicU64::new(0),
            segments: AtomicU64::new(0),
            channels: AtomicU64::new(0),
            failures: [const { AtomicU64::new(0) }; REASON_SLOTS],
            populated: [const { AtomicU32::new(0) }; POPULATED_WORDS],
            taken_back: [const { AtomicU64::new(0) }; REASON_SLOTS],
            reset_for: [const { AtomicU64::new(0) }; REASON_SLOTS],
        }
    }

    /// Returns the flags that are set.
    #[must_use]
    pub fn flags(&self) -> Flags {
        Flags(self.flags.load(Relaxed))
    }

    /// Sets the bits of `flags`.
    pub fn set_flags(&self, flags: Flags) {
        self.flags.fetch_or(flags.0, Relaxed);
    }

    /// Clears the bits of `flags`.
    pub fn clear_flags(&self, flags: Flags) {
        self.flags.fetch_and(!flags.0, Relaxed);
    }

    /// Shows that the library upgrades no connection, and why.
    ///
    /// `text` adds details such as a file and a line. Bytes after the first 256 are dropped.
    pub fn disable(&self, reason: Reason, text: &str) {
        let mut length = 0;
        for (cell, byte) in self.text.iter().zip(text.bytes()) {
            cell.store(byte, Relaxed);
            length += 1;
        }
        self.text_bytes.store(length, Relaxed);
        self.disabled.store(reason as u32, Release); // With the text.
        self.clear_flags(Flags::ENABLED);
    }

    /// Reverts [`disable`](Self::disable) after the kill switch was turned off.
    pub fn enable(&self) {
        self.disabled.store(Reason::None as u32, Relaxed);
        self.text_bytes.store(0, Relaxed);
        self.set_flags(Flags::ENABLED);
    }

    /// Counts one connection that was not upgraded for `reason`.
    pub fn count_failure(&self, reason: Reason) {
        count(&self.failures, reason);
    }

    /// Counts one connection that was upgraded and went back to TCP for `reason`.
    pub fn count_downgrade(&self, reason: Reason) {
        self.downgrades.fetch_add(1, Relaxed);
        count(&self.taken_back, reason);
    }

    /// Counts one connection that was reset for `reason`.
    pub fn count_reset(&self, reason: Reason) {
        self.resets.fetch_add(1, Relaxed);
        count(&self.reset_for, reason);
    }

    /// Returns the number of connections that were not upgraded for `reason`.
    #[must_use]
    pub fn failures(&self, reason: Reason) -> u64 {
        self.failures
            .get(reason as usize)
            .map_or(0, |counter| counter.load(Relaxed))
    }

    pub(crate) fn is_populated(&self, chunk: u32) -> bool {
        let (word, bit) = populated_bit(chunk);
        self.populated
            .get(word)
            .is_some_and(|word| word.load(Relaxed) & bit != 0)
    }

    pub(crate) fn mark_populated(&self, chunk: u32) {
        let (word, bit) = populated_bit(chunk);
        if let Some(word) = self.populated.get(word) {
            word.fetch_or(bit, Relaxed);
        }
    }
}

fn count(counters: &[AtomicU64; REASON_SLOTS], reason: Reason) {
    if let Some(counter) = counters.get(reason as usize) {
        counter.fetch_add(1, Relaxed);
    }
}

const fn populated_bit(chunk: u32) -> (usize, u32) {
    ((chunk / 32) as usize, 1 << (chunk % 32))
}

impl Entry {
    /// Starts the entry of a new socket with this descriptor number: counters are set to zero.
    pub fn begin(&self, state: State, reason: Reason) {
        self.generation.fetch_add(1, Relaxed);
        for counter in [
            &self.tcp_rx,
            &self.tcp_tx,
            &self.channel_rx,
            &self.channel_tx,
            &self.inode,
        ] {
            counter.store(0, Relaxed);
        }
        self.peer_pid.store(0, Relaxed);
        self.messages.store(0, Relaxed);
        self.set(state, reason);
    }

    /// Shows that the descriptor changed to `state`, and why.
    pub fn set(&self, state: State, reason: Reason) {
        self.reason.store(reason as u32, Relaxed);
        self.state.store(state as u32, Release); // With the reason.
    }

    /// Shows that the descriptor was closed.
    pub fn end(&self) {
        self.set(State::Unused, Reason::None);
    }

    /// Returns the state last set; [`State::Unused`] for an invalid number.
    #[must_use]
    pub fn state(&self) -> State {
        State::from_number(self.state.load(Relaxed)).unwrap_or(State::Unused)
    }

    /// Returns the reason last set; [`Reason::None`] for an invalid number.
    #[must_use]
    pub fn reason(&self) -> Reason {
        Reason::from_number(self.reason.load(Relaxed)).unwrap_or(Reason::None)
    }
}
