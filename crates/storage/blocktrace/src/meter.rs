//! Bytes written by device and hint, without an event for each: some ten nanoseconds per write.

use crate::bpf::{BpfError, BpfMeter};
use crate::device::Device;

/// Adds up until it is dropped.
#[derive(Debug)]
pub struct HintMeter(BpfMeter);

/// What was written to a device under one hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Counted {
    /// The disk or partition that writes were submitted to.
    pub device: Device,
    /// As in [`Event::hint`](crate::Event::hint).
    pub hint: Option<u8>,
    /// Since the meter was opened.
    pub bytes: u64,
}

/// Why there is no meter. Tracefs has no hints, so nothing stands in for BPF here.
#[derive(Debug, thiserror::Error)]
#[error("cannot count bytes by hint: {0}")]
pub struct MeterError(#[from] BpfError);

impl HintMeter {
    /// Begins to count writes to these devices; to all, if none are given.
    ///
    /// Writes are submitted to the device that is mounted: name the partition and not its disk, or both
    /// ([`Device::disk_and_partitions`]).
    ///
    /// # Errors
    /// BPF is refused, or the kernel does not describe itself.
    pub fn open(devices: &[Device]) -> Result<Self, MeterError> {
        Ok(Self(BpfMeter::open(devices)?))
    }

    /// What has been written since it was opened, sorted.
    ///
    /// # Errors
    /// The kernel's map cannot be read.
    pub fn read(&self) -> Result<Vec<Counted>, MeterError> {
        let rows = self.0.read()?.into_iter();
        let mut rows: Vec<Counted> = rows
            .map(|(device, hint, bytes)| Counted {
                device,
                hint,
                bytes,
            })
            .collect();
        rows.sort_unstable();
        Ok(rows)
    }

    /// How many writes were not counted, for there were too many kinds or they came while another one was counted.
    ///
    /// # Errors
    /// The kernel's map cannot be read.
    pub fn lost(&self) -> Result<u64, MeterError> {
        Ok(self.0.lost()?)
    }
}
