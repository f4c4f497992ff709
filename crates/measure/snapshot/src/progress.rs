//! Progress reports of running operations. The listener can cancel the operation.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A phase of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Reads the directories to find differing pieces.
    Compare,
    /// Reads the snapshot's files to check their hashes.
    Check,
    /// Copies bytes or shares extents.
    Copy,
    /// Reads back the written files.
    ReadBack,
}

/// The progress of one phase, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub phase: Phase,
    /// Bytes of this phase that are done.
    pub done_bytes: u64,
    /// Bytes of this phase in total.
    pub total_bytes: u64,
}

/// The listener, called from several threads. If it returns `Break`, the operation ends with an
/// error and leaves the same state behind as any other failure.
pub type Report<'a> = &'a (dyn Fn(Progress) -> ControlFlow<()> + Sync);

/// The listener returned `Break`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cancelled;

/// Counts the bytes of one phase and calls the listener.
pub(crate) struct Meter<'a> {
    phase: Phase,
    total: u64,
    done: AtomicU64,
    report: Report<'a>,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(phase: Phase, total: u64, report: Report<'a>) -> Self {
        let done = AtomicU64::new(0);
        Self {
            phase,
            total,
            done,
            report,
        }
    }

    /// Adds `bytes` and reports the new sum.
    pub(crate) fn add(&self, bytes: u64) -> Result<(), Cancelled> {
        let done_bytes = self.done.fetch_add(bytes, Relaxed).saturating_add(bytes);
        let progress = Progress {
            phase: self.phase,
            done_bytes,
            total_bytes: self.total,
        };
        match (self.report)(progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Cancelled),
        }
    }
}
