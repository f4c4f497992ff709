//! Sums of written bytes by device and hint, without an event per write. A write costs some ten
//! nanoseconds.

use crate::bpf::{BpfError, BpfMeter};
use crate::device::Device;

/// Counts written bytes until it is dropped.
#[derive(Debug)]
pub struct HintMeter(BpfMeter);

/// The bytes written to one device with one hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HintBytes {
    /// The disk or partition to which the writes were submitted.
    pub device: Device,
    /// As in [`Event::hint`](crate::Event::hint).
    pub hint: Option<u8>,
    /// Bytes since the meter was opened.
    pub bytes: u64,
}

/// An error of the meter. Tracefs shows no hints, so it cannot replace BPF here.
#[derive(Debug, thiserror::Error)]
#[error("cannot count bytes by hint: {0}")]
pub struct MeterError(#[from] BpfError);

impl HintMeter {
    /// Starts to count writes to `devices`; to all devices if `devices` is empty.
    ///
    /// Writes are submitted to the mounted device: give the partition instead of its disk, or both
    /// ([`Device::disk_and_partitions`]).
    ///
    /// # Errors
    /// Fails if the kernel refuses BPF or has no type information (BTF).
    pub fn open(devices: &[Device]) -> Result<Self, MeterError> {
        Ok(Self(BpfMeter::open(devices)?))
    }

    /// Returns the bytes written since the meter was opened, sorted by device and hint.
    ///
    /// # Errors
    /// Fails if the kernel's map cannot be read.
    pub fn read(&self) -> Result<Vec<HintBytes>, MeterError> {
        let rows = self.0.read()?.into_iter();
        let mut rows: Vec<HintBytes> = rows
            .map(|(device, hint, bytes)| HintBytes {
                device,
                hint,
                bytes,
            })
            .collect();
        rows.sort_unstable();
        Ok(rows)
    }

    /// Returns the number of writes that were not counted, because the map had no room for another
    /// pair of device and hint, or because the program was running on that CPU already.
    ///
    /// # Errors
    /// Fails if the kernel's map cannot be read.
    pub fn lost(&self) -> Result<u64, MeterError> {
        Ok(self.0.lost()?)
    }
}
