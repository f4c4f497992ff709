//! The time series of a run: one entry per second, from the start to the end of the last
//! transaction.

use serde::{Deserialize, Serialize};

use super::histogram::Latencies;
use crate::driver::clock::SECOND_US;
use crate::driver::sample::{Ending, Sample};
use crate::spec::deck::Kind;

/// Significant digits of the histograms of one second. More digits would need more memory for each
/// second.
const DIGITS: u8 = 2;

/// Transactions that ended in one second.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Second {
    /// Completed transactions by type, in the order of [`Kind::ALL`]: committed, or rolled back as
    /// their input demands. A queued delivery counts in the second in which it was performed.
    pub done: [u32; 5],
    /// New-Orders that were rolled back as their input demands; `done` includes them.
    pub rolled_back: u32,
    pub failed: u32,
    /// Transactions that lost their connection.
    pub unknown: u32,
    /// Number of attempts after conflicts.
    pub retries: u32,
    /// Sum of the response times of completed transactions, in microseconds. Divided by the number
    /// of these transactions, it is the mean response time R.
    pub latency_sum_us: u64,
    /// Time that transactions spent in the system within this second, in microseconds. In seconds,
    /// it is the mean number N of transactions in the system; by Little's law N = X * R.
    pub in_system_us: u64,
    /// Number of late transactions of an open loop: at the end of the second, their intended starts
    /// had passed and they had not begun.
    pub backlog: u64,
    /// p50, p95 and p99 of the response times of New-Orders, in microseconds.
    pub new_order_us: Option<[u64; 3]>,
    /// The response times of New-Orders; kept only if the series is to be added to others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_orders: Option<Latencies>,
}

impl Second {
    /// Number of completed transactions.
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
        self.new_order_us = self.new_orders.as_ref().and_then(quantiles);
    }

    fn record(&mut self, sample: &Sample) {
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

    /// Computes the quantiles. Drops the histogram unless `keep` is set.
    fn close(&mut self, keep: bool) {
        self.new_order_us = self.new_orders.as_ref().and_then(quantiles);
        if !keep {
            self.new_orders = None;
        }
    }
}

fn quantiles(latencies: &Latencies) -> Option<[u64; 3]> {
    let at = |quantile| latencies.quantile_us(quantile);
    Some([at(0.5)?, at(0.95)?, at(0.99)?])
}

/// The time series of a run, one entry per second.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Series {
    pub seconds: Vec<Second>,
    /// Number of closed seconds at the start of the series.
    #[serde(skip)]
    closed: usize,
    /// Whether closed seconds keep their histograms.
    #[serde(skip)]
    keeps_histograms: bool,
}

impl Series {
    /// An empty series. With `keeps_histograms`, it can be added to the series of other hosts.
    #[must_use]
    pub fn new(keeps_histograms: bool) -> Self {
        Self {
            keeps_histograms,
            ..Self::default()
        }
    }

    /// Records a transaction in the second in which it ended, and its time in the system in each
    /// second that it spans.
    pub fn record(&mut self, sample: &Sample) {
        self.at(sample.ended_us).record(sample);
        // A queued delivery stays in the system until it is performed. The sample of its execution
        // counts this time.
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

    /// Sets the backlog at the end of a second.
    pub fn set_backlog(&mut self, second: usize, backlog: u64) {
        self.at(second as u64 * SECOND_US).backlog = backlog;
    }

    /// Closes the seconds before `until`: computes their quantiles.
    pub fn close(&mut self, until: usize) {
        let until = until.min(self.seconds.len());
        for second in self.seconds.iter_mut().take(until).skip(self.closed) {
            second.close(self.keeps_histograms);
        }
        self.closed = self.closed.max(until);
    }

    /// Adds the series of another host that started at the same instant.
    pub fn add(&mut self, other: &Self) {
        if self.seconds.len() < other.seconds.len() {
            self.seconds
                .resize_with(other.seconds.len(), Second::default);
        }
        for (mine, theirs) in self.seconds.iter_mut().zip(&other.seconds) {
            mine.add(theirs);
        }
    }

    /// Drops the histograms. Afterwards the series cannot be added to others.
    pub fn drop_histograms(&mut self) {
        for second in &mut self.seconds {
            second.new_orders = None;
        }
    }

    /// New-Orders in each whole second inside an interval.
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
