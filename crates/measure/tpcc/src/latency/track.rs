//! Counts and latencies of one type of transaction in one phase of a run, and counts of inputs.

use serde::{Deserialize, Serialize};

use super::histogram::Latencies;
use crate::driver::sample::{Ending, Sample};
use crate::spec::deck::Kind;

/// A phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Before the measured interval. A transaction that began here belongs to the ramp-up.
    RampUp,
    /// The measured interval. Its transactions lie wholly inside it (TPC-C §5.1.2).
    Measured,
    /// After the measured interval. A transaction that was in progress at the end of the interval
    /// belongs to the drain.
    Drain,
}

impl Phase {
    pub const ALL: [Self; 3] = [Self::RampUp, Self::Measured, Self::Drain];

    /// The index of the value in [`ALL`](Self::ALL).
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }
}

/// A type of transaction in results. Deferred deliveries are a type of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TrackName {
    /// A transaction of a terminal, from the start to the answer. With a queue, the latency of a
    /// Delivery is the time to put it into the queue.
    Of(Kind),
    /// A Delivery that was performed from the queue. Its latency includes the time in the queue.
    Deferred,
}

impl TrackName {
    /// In the order of [`Kind::ALL`].
    pub const ALL: [Self; 6] = [
        Self::Of(Kind::NewOrder),
        Self::Of(Kind::Payment),
        Self::Of(Kind::OrderStatus),
        Self::Of(Kind::Delivery),
        Self::Of(Kind::StockLevel),
        Self::Deferred,
    ];

    /// The type of a sample.
    #[must_use]
    pub fn of(sample: &Sample) -> Self {
        if sample.deferred {
            Self::Deferred
        } else {
            Self::Of(sample.kind)
        }
    }

    /// The index of the value in [`ALL`](Self::ALL).
    #[must_use]
    pub fn index(self) -> usize {
        match self {
            Self::Of(kind) => kind.index(),
            Self::Deferred => Kind::ALL.len(),
        }
    }

    /// The name in BenchmarkSQL's result files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Of(kind) => kind.name(),
            Self::Deferred => "DELIVERY_BG",
        }
    }
}

/// Counts and latencies of one type of transaction in one phase.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Track {
    pub committed: u64,
    /// Rolled back as the input demands; these transactions count as done.
    pub rolled_back: u64,
    pub queued: u64,
    /// Undone after an error, or after too many conflicts.
    pub failed: u64,
    /// The connection was lost during the transaction.
    pub unknown: u64,
    /// Attempts after a conflict, successful or not.
    pub retries: u64,
    /// Transactions with at least one retry.
    pub retried: u64,
    /// Deliveries that found at least one district without an undelivered order.
    pub with_skips: u64,
    /// Districts without an undelivered order.
    pub skipped: u64,
    /// Latencies of transactions that were done or queued.
    pub latency: Latencies,
}

impl Track {
    /// Number of transactions that were committed, or rolled back as their input demands (§5.4.2).
    #[must_use]
    pub fn done(&self) -> u64 {
        self.committed + self.rolled_back
    }

    /// Adds the counts and the latency of a transaction.
    pub fn record(&mut self, sample: &Sample) {
        let count = match sample.ending {
            Ending::Committed => &mut self.committed,
            Ending::RolledBack => &mut self.rolled_back,
            Ending::Queued => &mut self.queued,
            Ending::Failed => &mut self.failed,
            Ending::Unknown => &mut self.unknown,
        };
        *count += 1;
        self.retries += u64::from(sample.retries);
        self.retried += u64::from(sample.retries > 0);
        self.with_skips += u64::from(sample.skipped > 0);
        self.skipped += u64::from(sample.skipped);
        if sample.is_done() || sample.ending == Ending::Queued {
            self.latency.record(sample.latency_us());
        }
    }

    /// Adds the counts and latencies of another load host.
    pub fn add(&mut self, other: &Self) {
        let Self {
            committed,
            rolled_back,
            queued,
            failed,
            unknown,
            retries,
            retried,
            with_skips,
            skipped,
            latency,
        } = other;
        self.committed += committed;
        self.rolled_back += rolled_back;
        self.queued += queued;
        self.failed += failed;
        self.unknown += unknown;
        self.retries += retries;
        self.retried += retried;
        self.with_skips += with_skips;
        self.skipped += skipped;
        self.latency.add(latency);
    }
}

/// Counts of the input properties of §5.5.1.5, over completed transactions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct InputCounts {
    pub orders: u64,
    /// New-Orders with an unused item.
    pub rollbacks: u64,
    /// New-Orders by number of lines, from 0.
    pub by_lines: [u64; 16],
    /// Order lines supplied by another warehouse.
    pub remote_lines: u64,
    pub payments: u64,
    /// Payments by customers of another warehouse.
    pub remote_payments: u64,
    /// Payments that select the customer by last name.
    pub payments_by_name: u64,
    pub statuses: u64,
    /// Order-Status transactions that select the customer by last name.
    pub statuses_by_name: u64,
}

impl InputCounts {
    /// Counts the input of a transaction.
    pub fn record(&mut self, sample: &Sample) {
        let traits = sample.traits;
        match sample.kind {
            Kind::NewOrder => {
                self.orders += 1;
                self.rollbacks += u64::from(traits.rollback);
                self.by_lines[usize::from(traits.lines).min(15)] += 1;
                self.remote_lines += u64::from(traits.remote_lines);
            }
            Kind::Payment => {
                self.payments += 1;
                self.remote_payments += u64::from(traits.remote);
                self.payments_by_name += u64::from(traits.by_name);
            }
            Kind::OrderStatus => {
                self.statuses += 1;
                self.statuses_by_name += u64::from(traits.by_name);
            }
            Kind::Delivery | Kind::StockLevel => {}
        }
    }

    /// Number of lines of all orders.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.by_lines
            .iter()
            .zip(0u64..)
            .map(|(orders, lines)| orders * lines)
            .sum()
    }

    /// Adds the counts of another load host.
    pub fn add(&mut self, other: &Self) {
        let Self {
            orders,
            rollbacks,
            by_lines,
            remote_lines,
            payments,
            remote_payments,
            payments_by_name,
            statuses,
            statuses_by_name,
        } = other;
        self.orders += orders;
        self.rollbacks += rollbacks;
        for (mine, theirs) in self.by_lines.iter_mut().zip(by_lines) {
            *mine += theirs;
        }
        self.remote_lines += remote_lines;
        self.payments += payments;
        self.remote_payments += remote_payments;
        self.payments_by_name += payments_by_name;
        self.statuses += statuses;
        self.statuses_by_name += statuses_by_name;
    }
}
