//! A run second by second, from its start to the end of its last transaction.

use serde::{Deserialize, Serialize};

use super::histogram::Latencies;
use crate::driver::clock::SECOND_US;
use crate::driver::sample::{Ending, Sample};
use crate::spec::deck::Kind;

/// Digits of the latencies of one second: a second has few, and a run many seconds.
const DIGITS: u8 = 2;

/// What ended in one second.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Second {
    /// Done by type, in the order of [`Kind::ALL`]: committed, or rolled back as demanded. Deliveries
    /// when they are done, not when they are queued.
    pub done: [u32; 5],
    /// New-Orders rolled back as demanded, contained in `done`.
    pub rolled_back: u32,
    /// Failed.
    pub failed: u32,
    /// Lost with their connection.
    pub unknown: u32,
    /// Attempts after conflicts.
    pub retries: u32,
    /// Sum of the response times of what was done, in microseconds: with `done` the mean response
    /// time R.
    pub latency_sum_us: u64,
    /// Time that transactions spent in the system within this second, in microseconds: as many
    /// seconds are the mean number N of them. N = X * R.
    pub in_system_us: u64,
    /// Of an open loop: intended starts that had passed at the end of the second and not begun.
    pub backlog: u64,
    /// Response times of New-Orders in microseconds: p50, p95, p99.
    pub new_order_us: Option<[u64; 3]>,
    /// The same whole; kept where parts of a run are to be added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_orders: Option<Latencies>,
}

impl Second {
    /// Everything that was done.
    #[must_use]
    pub fn total(&self) -> u32 {
        self.done.iter().sum()
    }

    /// Mean number of transactions in the system.
    #[must_use]
    pub fn concurrency(&self) -> f64 {
        self.in_system_us as f64 / SECOND_US as f64
    }

    fn add(&mut self, other: &Self) {
        let Self {
            done,
            rolled_back,
            failed,
            unknown,
            retries,
            latency_sum_us,
            in_system_us,
            backlog,
            new_order_us: _,
            new_orders,
        } = other;
        for (mine, theirs) in self.done.iter_mut().zip(done) {
            *mine += theirs;
        }
        self.rolled_back += rolled_back;
        self.failed += failed;
        self.unknown += unknown;
        self.retries += retries;
        self.latency_sum_us += latency_sum_us;
        self.in_system_us += in_system_us;
        self.backlog += backlog;
        if let Some(theirs) = new_orders {
            let mine = self
                .new_orders
                .get_or_insert_with(|| Latencies::with_digits(DIGITS));
            mine.add(theirs);
        }
        self.new_order_us = self.new_orders.as_ref().and_then(three);
    }

    fn take(&mut self, sample: &Sample) {
        match sample.ending {
            Ending::Committed | Ending::RolledBack => {
                self.done[sample.kind.index()] += 1;
                self.latency_sum_us += sample.latency_us();
            }
            Ending::Queued => {}
            Ending::Failed => self.failed += 1,
            Ending::Unknown => self.unknown += 1,
        }
        self.rolled_back += u32::from(sample.ending == Ending::RolledBack);
        self.retries += u32::from(sample.retries);
        if sample.kind == Kind::NewOrder && sample.is_done() {
            let latencies = self
                .new_orders
                .get_or_insert_with(|| Latencies::with_digits(DIGITS));
            latencies.record(sample.latency_us());
        }
    }

    /// Nothing more is expected of it.
    fn close(&mut self, keep: bool) {
        self.new_order_us = self.new_orders.as_ref().and_then(three);
        if !keep {
            self.new_orders = None;
        }
    }
}

fn three(latencies: &Latencies) -> Option<[u64; 3]> {
    let at = |quantile| latencies.quantile_us(quantile);
    Some([at(0.5)?, at(0.95)?, at(0.99)?])
}

/// All seconds of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Series {
    /// From the start of the run.
    pub seconds: Vec<Second>,
    /// How many are complete.
    #[serde(skip)]
    closed: usize,
    /// Whether their histograms stay.
    #[serde(skip)]
    keeps_histograms: bool,
}

impl Series {
    /// An empty one, which can be added to others if it keeps its histograms.
    #[must_use]
    pub fn new(keeps_histograms: bool) -> Self {
        Self {
            keeps_histograms,
            ..Self::default()
        }
    }

    /// Adds a transaction to the second in which it ended, and its time to those it was there.
    pub fn take(&mut self, sample: &Sample) {
        self.at(sample.ended_us).take(sample);
        // A queued delivery is in the system until it is done; that comes with its own sample.
        if sample.ending == Ending::Queued {
            return;
        }
        let mut from = sample.due_us;
        while from < sample.ended_us {
            let to = sample.ended_us.min((from / SECOND_US + 1) * SECOND_US);
            self.at(from).in_system_us += to - from;
            from = to;
        }
    }

    /// Notes how many intended starts were late at the end of a second.
    pub fn set_backlog(&mut self, second: usize, backlog: u64) {
        self.at(second as u64 * SECOND_US).backlog = backlog;
    }

    /// Seconds before `until` are complete.
    pub fn close(&mut self, until: usize) {
        let until = until.min(self.seconds.len());
        for second in self.seconds.iter_mut().take(until).skip(self.closed) {
            second.close(self.keeps_histograms);
        }
        self.closed = self.closed.max(until);
    }

    /// Adds the series of another host, which began at the same instant.
    pub fn add(&mut self, other: &Self) {
        if self.seconds.len() < other.seconds.len() {
            self.seconds
                .resize_with(other.seconds.len(), Second::default);
        }
        for (mine, theirs) in self.seconds.iter_mut().zip(&other.seconds) {
            mine.add(theirs);
        }
    }

    /// Forgets the histograms: nothing more is added.
    pub fn drop_histograms(&mut self) {
        for second in &mut self.seconds {
            second.new_orders = None;
        }
    }

    /// New-Orders of each whole second inside an interval.
    #[must_use]
    pub fn new_orders_within(&self, from_us: u64, to_us: u64) -> Vec<f64> {
        let first = usize::try_from(from_us.div_ceil(SECOND_US)).unwrap_or(usize::MAX);
        let last = usize::try_from(to_us / SECOND_US).unwrap_or(usize::MAX);
        let inside = self.seconds.iter().take(last).skip(first);
        inside.map(|second| f64::from(second.done[0])).collect()
    }

    fn at(&mut self, us: u64) -> &mut Second {
        let index = usize::try_from(us / SECOND_US).unwrap_or(usize::MAX - 1);
        if self.seconds.len() <= index {
            self.seconds.resize_with(index + 1, Second::default);
        }
        &mut self.seconds[index]
    }
}
