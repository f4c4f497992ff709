//! How far an operation is, told while it works; the listener may end it.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Reading what is in the directories, to find what differs.
    Compare,
    /// Reading what is in the snapshot.
    Check,
    /// Copying bytes, or sharing extents.
    Copy,
    /// Reading back what was written.
    ReadBack,
}

/// One report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub phase: Phase,
    /// Bytes of it that are done.
    pub done_bytes: u64,
    /// Bytes of it in all.
    pub total_bytes: u64,
}

/// Called with each report, from several threads. `Break` ends the operation with an error; what it
/// leaves behind is what a failure leaves behind.
pub type Report<'a> = &'a (dyn Fn(Progress) -> ControlFlow<()> + Sync);

/// The listener said `Break`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cancelled;

/// The bytes of one phase.
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

    /// Reports `bytes` more.
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
