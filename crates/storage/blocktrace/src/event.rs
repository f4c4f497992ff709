//! What is told of a write.

use crate::device::Device;

/// One write or discard, as it was submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// When, in nanoseconds of CLOCK_MONOTONIC.
    pub t_ns: u64,
    /// The device that it was submitted to: a disk, or a partition of one.
    pub device: Device,
    /// The first byte, counted from the beginning of the whole disk even if `device` is a partition.
    pub address: u64,
    /// How many bytes: a multiple of 512, not 0.
    pub len: u64,
    /// What is done to them.
    pub operation: Operation,
    /// The write-lifetime hint as fcntl(2) numbers them (`RWH_WRITE_LIFE_*`), 0 when nobody has set one; `None` where
    /// the kernel does not say (before Linux 6.9, and by tracefs).
    pub hint: Option<u8>,
    /// Whether the file system says that it is its own metadata or journal (`REQ_META`): XFS does of all of it, ext4 of most.
    pub is_metadata: bool,
    /// Who submitted it: for buffered writes a thread of the kernel, as a rule. `None` when it cannot be told.
    pub pid: Option<u32>,
}

/// What is done to bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// They are written; zeroes that must stay allocated are, too.
    Write,
    /// They are given up: discarded, erased, or zeroed in a way that may unmap them.
    Discard,
}
