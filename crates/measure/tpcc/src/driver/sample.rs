//! The record of one transaction, and the buffer in which a thread collects such records.
//!
//! Each thread has its own buffer, which the coordinator empties once a second. Terminals therefore
//! share no memory that they write to while they perform a transaction.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::delivery::DeliveryResult;
use crate::spec::deck::Kind;
use crate::spec::inputs::{Customer, Input};

/// One transaction. Times are microseconds since the start of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    pub kind: Kind,
    /// Number of the terminal, from 0 over all load hosts.
    pub terminal: u32,
    /// True for a Delivery that was performed from the queue.
    pub deferred: bool,
    pub ending: Ending,
    /// Attempts after the first one, each after a conflict.
    pub retries: u16,
    /// Number of districts in which a Delivery found no undelivered order.
    pub skipped: u8,
    pub traits: InputTraits,
    /// Start of the latency measurement: the intended start in an open loop; otherwise the time at
    /// which the terminal sent or queued the transaction.
    pub due_us: u64,
    /// Time at which the first statement could be sent.
    pub began_us: u64,
    /// Time at which the answer to the commit arrived.
    pub ended_us: u64,
}

impl Sample {
    /// Response time (§5.3.4), from `due_us`.
    #[must_use]
    pub fn latency_us(&self) -> u64 {
        self.ended_us.saturating_sub(self.due_us)
    }

    /// Whether the transaction was committed, or rolled back as its input demands.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.ending, Ending::Committed | Ending::RolledBack)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Committed,
    /// Rolled back as the input demands (§2.4.2.3).
    RolledBack,
    /// A Delivery that was put into the queue; it has not been performed.
    Queued,
    /// Undone after an error, or after too many conflicts.
    Failed,
    /// The connection was lost during the transaction: its outcome is unknown.
    Unknown,
}

/// Properties of an input that are counted for §5.5.1.5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InputTraits {
    /// Number of lines of a New-Order.
    pub lines: u8,
    /// Number of lines that another warehouse supplies.
    pub remote_lines: u8,
    /// Whether a New-Order must be rolled back.
    pub rollback: bool,
    /// Whether the customer of a Payment belongs to another warehouse.
    pub remote: bool,
    /// Whether the customer is chosen by last name.
    pub by_name: bool,
}

impl InputTraits {
    #[must_use]
    pub fn of(input: &Input) -> Self {
        let by_name = |customer: &Customer| matches!(customer, Customer::LastName(_));
        match input {
            Input::NewOrder(order) => {
                let home = order.district.w_id;
                let remote = order.lines.iter().filter(|line| line.supply_w_id != home);
                Self {
                    lines: u8::try_from(order.lines.len()).unwrap_or(u8::MAX),
                    remote_lines: u8::try_from(remote.count()).unwrap_or(u8::MAX),
                    rollback: order.is_rollback(),
                    ..Self::default()
                }
            }
            Input::Payment(payment) => Self {
                remote: payment.home.w_id != payment.district.w_id,
                by_name: by_name(&payment.customer),
                ..Self::default()
            },
            Input::OrderStatus(status) => Self {
                by_name: by_name(&status.customer),
                ..Self::default()
            },
            Input::Delivery(_) | Input::StockLevel(_) => Self::default(),
        }
    }
}

/// Collects the samples and connection events of one thread.
#[derive(Debug, Default)]
pub(super) struct SampleBuffer {
    batch: Mutex<Batch>,
    /// Time at which the transaction in progress was sent; 0 if no transaction is in progress.
    asked_us: AtomicU64,
}

/// The contents of one or more sample buffers.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// In the order of end times, within one thread.
    pub(super) samples: Vec<Sample>,
    /// Rows of the delivery result file.
    pub(super) delivered: Vec<DeliveryResult>,
    /// Losses, reconnects and other events, in the order of their times within one thread.
    pub(super) events: Vec<ConnectionEvent>,
}

/// A change in the state of a connection. Events are ordered by time; at the same time, losses come
/// first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ConnectionEvent {
    pub(super) at_us: u64,
    pub(super) change: ConnectionChange,
}

/// The kinds of [`ConnectionEvent`], in sort order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ConnectionChange {
    /// The connection was lost during a transaction.
    Lost,
    /// The connection was opened again.
    Reopened,
    /// The first transaction after a reconnect has begun.
    FirstBegun,
    /// The first transaction after a reconnect has ended. If the connection was lost again, this
    /// event follows the loss.
    FirstEnded,
    /// The connection is closed and will not be opened again.
    Abandoned,
}

impl SampleBuffer {
    /// Records that a transaction was sent. Called for each attempt.
    pub(super) fn on_asked(&self, at_us: u64) {
        self.asked_us.store(at_us.max(1), Ordering::Relaxed);
    }

    /// Records that the transaction was answered, or that its connection was lost.
    pub(super) fn on_answered(&self) {
        self.asked_us.store(0, Ordering::Relaxed);
    }

    /// Time at which the transaction without an answer was sent; `None` if there is no such
    /// transaction.
    pub(super) fn asked_us(&self) -> Option<u64> {
        Some(self.asked_us.load(Ordering::Relaxed)).filter(|at_us| *at_us > 0)
    }

    pub(super) fn put(&self, sample: Sample) {
        self.batch().samples.push(sample);
    }

    pub(super) fn put_delivered(&self, row: DeliveryResult) {
        self.batch().delivered.push(row);
    }

    pub(super) fn put_connection_event(&self, at_us: u64, change: ConnectionChange) {
        self.batch().events.push(ConnectionEvent { at_us, change });
    }

    /// Moves the contents to the end of `all` and keeps the allocations. Returns the number of
    /// samples.
    pub(super) fn empty_into(&self, all: &mut Batch) -> u64 {
        let mut batch = self.batch();
        let Batch {
            samples,
            delivered,
            events,
        } = &mut *batch;
        let count = samples.len() as u64;
        all.samples.append(samples);
        all.delivered.append(delivered);
        all.events.append(events);
        count
    }

    fn batch(&self) -> MutexGuard<'_, Batch> {
        // Each change leaves the batch consistent, so a poisoned lock can be used.
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
