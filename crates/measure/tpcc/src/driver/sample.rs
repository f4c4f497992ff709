//! What is kept of a transaction, and where a terminal puts it.
//!
//! Each terminal has a desk of its own, which the collector empties once a second: on the way of
//! a transaction there is nothing that two terminals write to.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::delivery::Delivered;
use crate::spec::deck::Kind;
use crate::spec::inputs::{Customer, Input};

/// One transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Which one.
    pub kind: Kind,
    /// Whose: numbered from 0 over all hosts.
    pub terminal: u32,
    /// A Delivery that a terminal had put into the queue.
    pub deferred: bool,
    /// How it ended.
    pub ending: Ending,
    /// Attempts after the first one, each after a conflict.
    pub retries: u16,
    /// Districts of a Delivery in which nothing waited.
    pub skipped: u8,
    /// What its input was like.
    pub traits: Traits,
    /// From when its latency counts: the intended start, or the moment of queueing.
    pub due_us: u64,
    /// When its first statement could go out.
    pub began_us: u64,
    /// When the answer to its commit was there.
    pub ended_us: u64,
}

impl Sample {
    /// Response time (§5.3.4), from the intended start.
    #[must_use]
    pub fn latency_us(&self) -> u64 {
        self.ended_us.saturating_sub(self.due_us)
    }

    /// Whether the database did it: committed, or rolled back as its input demands.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.ending, Ending::Committed | Ending::RolledBack)
    }
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Committed.
    Committed,
    /// Rolled back as its input demands (§2.4.2.3).
    RolledBack,
    /// A Delivery that is in the queue, not done yet.
    Queued,
    /// It was undone after an error, or after too many conflicts.
    Failed,
    /// The connection was lost in it: nobody knows whether it was kept.
    Unknown,
}

/// What §5.5.1.5 counts of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traits {
    /// Lines of a New-Order.
    pub lines: u8,
    /// Lines that another warehouse supplies.
    pub remote_lines: u8,
    /// A New-Order that must be rolled back.
    pub rollback: bool,
    /// A Payment by a customer of another warehouse.
    pub remote: bool,
    /// The customer is chosen by last name.
    pub by_name: bool,
}

impl Traits {
    /// Those of an input.
    #[must_use]
    pub fn of(input: &Input) -> Self {
        let by_name = |customer: &Customer| matches!(customer, Customer::LastName(_));
        match input {
            Input::NewOrder(order) => {
                let home = order.place.w_id;
                let remote = order.lines.iter().filter(|line| line.supply_w_id != home);
                Self {
                    lines: u8::try_from(order.lines.len()).unwrap_or(u8::MAX),
                    remote_lines: u8::try_from(remote.count()).unwrap_or(u8::MAX),
                    rollback: order.is_rollback(),
                    ..Self::default()
                }
            }
            Input::Payment(payment) => Self {
                remote: payment.home.w_id != payment.place.w_id,
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

/// Where one thread puts what it did.
#[derive(Debug, Default)]
pub(super) struct Desk {
    sheet: Mutex<Sheet>,
    /// When the server was asked for what it has not answered yet; 0 when nothing is asked.
    asked_us: AtomicU64,
}

/// What is on a desk.
#[derive(Debug, Default)]
pub(super) struct Sheet {
    /// In the order in which they ended.
    pub(super) samples: Vec<Sample>,
    /// Rows of the result file of deliveries.
    pub(super) delivered: Vec<Delivered>,
    /// What became of connections that were lost, each with its time.
    pub(super) turns: Vec<Turn>,
}

/// A change of a connection; of one instant the losses come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    pub(super) at_us: u64,
    pub(super) way: Way,
}

/// What became of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    /// It was lost in a transaction.
    Lost,
    /// It is open again.
    Opened,
    /// The first transaction since it is open again begins.
    Begun,
    /// That transaction has ended; when the connection is lost in it, this follows the loss.
    Ended,
    /// It is down, and nobody opens it any more.
    Left,
}

impl Desk {
    /// A transaction is sent, once more or for the first time.
    pub(super) fn on_asked(&self, at_us: u64) {
        self.asked_us.store(at_us.max(1), Ordering::Relaxed);
    }

    /// It has an answer, or its connection is lost.
    pub(super) fn on_answered(&self) {
        self.asked_us.store(0, Ordering::Relaxed);
    }

    /// Since when an answer is missing.
    pub(super) fn asked_us(&self) -> Option<u64> {
        Some(self.asked_us.load(Ordering::Relaxed)).filter(|at_us| *at_us > 0)
    }

    pub(super) fn put(&self, sample: Sample) {
        self.sheet().samples.push(sample);
    }

    pub(super) fn put_delivered(&self, row: Delivered) {
        self.sheet().delivered.push(row);
    }

    pub(super) fn put_turn(&self, at_us: u64, way: Way) {
        self.sheet().turns.push(Turn { at_us, way });
    }

    /// Moves everything to `all`; the desk keeps its memory. How many transactions that were.
    pub(super) fn empty_into(&self, all: &mut Sheet) -> u64 {
        let mut sheet = self.sheet();
        let Sheet {
            samples,
            delivered,
            turns,
        } = &mut *sheet;
        let count = samples.len() as u64;
        all.samples.append(samples);
        all.delivered.append(delivered);
        all.turns.append(turns);
        count
    }

    fn sheet(&self) -> MutexGuard<'_, Sheet> {
        // A sheet is whole between any two of its changes.
        self.sheet.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
