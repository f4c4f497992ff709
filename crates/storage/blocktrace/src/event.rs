//! One block write or discard.

use crate::device::Device;

/// One write or discard at the time when it was submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Time of the submission in nanoseconds of CLOCK_MONOTONIC.
    pub t_ns: u64,
    /// The disk or partition to which the operation was submitted.
    pub device: Device,
    /// Address of the first byte on the whole disk, even if `device` is a partition.
    pub address: u64,
    /// Length in bytes: a multiple of 512, never 0.
    pub len: u64,
    pub operation: Operation,
    /// The write-lifetime hint in the numbers of fcntl(2) (`RWH_WRITE_LIFE_*`), 0 for a write
    /// without a hint; `None` from tracefs and from kernels before Linux 6.9.
    pub hint: Option<u8>,
    /// True if the file system marked the operation as metadata or journal (`REQ_META`). XFS marks
    /// all of its metadata, ext4 most of its metadata.
    pub is_metadata: bool,
    /// PID of the process that submitted the operation; for buffered writes usually a kernel
    /// thread. `None` if a line of tracefs has no PID.
    pub pid: Option<u32>,
}

/// The effect of an operation on its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// The bytes are written. This includes zeroes that must stay allocated (`REQ_NOUNMAP`).
    Write,
    /// The bytes are discarded, erased, or zeroed in a way that may unmap them.
    Discard,
}
