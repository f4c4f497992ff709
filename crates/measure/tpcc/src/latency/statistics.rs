//! The statistics of a run: each transaction is recorded once, in its phase, type and second.

use super::gaps::Gaps;
use super::series::Series;
use super::track::{InputCounts, Phase, Track, TrackName};
use crate::driver::clock::SECOND_US;
use crate::driver::sample::{Ending, Sample};
use crate::spec::deck::Kind;

/// The statistics of a run so far.
#[derive(Debug)]
pub struct RunStatistics {
    interval: Interval,
    /// Counts and latencies by phase and type.
    pub(crate) tracks: [[Track; 6]; 3],
    /// Counts of input properties in the measured phase.
    pub(crate) input_counts: InputCounts,
    pub(crate) series: Series,
    pub(crate) gaps: Gaps,
    /// End of the last recorded transaction.
    pub(crate) last_us: u64,
    done: u64,
    failed: u64,
    retries: u64,
    unknown: u64,
}

/// The measured interval, in microseconds since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// End of the ramp-up; `None` while it is not known.
    pub from_us: Option<u64>,
    /// End of the measured interval.
    pub to_us: u64,
}

impl Interval {
    fn phase(self, sample: &Sample) -> Phase {
        match self.from_us {
            _ if sample.ended_us > self.to_us => Phase::Drain,
            Some(from_us) if sample.due_us >= from_us => Phase::Measured,
            Some(_) | None => Phase::RampUp,
        }
    }
}

/// Counts of transactions over all phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    pub done: u64,
    pub failed: u64,
    /// Number of attempts after conflicts.
    pub retries: u64,
    /// Transactions that lost their connection.
    pub unknown: u64,
}

impl RunStatistics {
    /// Empty statistics. With `keeps_histograms`, they can be added to the statistics of other
    /// hosts.
    #[must_use]
    pub fn new(interval: Interval, keeps_histograms: bool) -> Self {
        Self {
            interval,
            tracks: Default::default(),
            input_counts: InputCounts::default(),
            series: Series::new(keeps_histograms),
            gaps: Gaps::default(),
            last_us: 0,
            done: 0,
            failed: 0,
            retries: 0,
            unknown: 0,
        }
    }

    #[must_use]
    pub fn interval(&self) -> Interval {
        self.interval
    }

    /// Changes the interval for transactions that are recorded from now on.
    pub fn set_interval(&mut self, interval: Interval) {
        self.interval = interval;
    }

    /// Records transactions, in the order in which they ended.
    pub fn record(&mut self, samples: &[Sample]) {
        for sample in samples {
            self.last_us = self.last_us.max(sample.ended_us);
            let phase = self.interval.phase(sample);
            let track = &mut self.tracks[phase.index()][TrackName::of(sample).index()];
            track.record(sample);
            self.series.record(sample);
            if sample.is_done() {
                self.done += 1;
                self.gaps.on_done(sample.ended_us);
                if phase == Phase::Measured && !sample.deferred {
                    self.input_counts.record(sample);
                }
            }
            self.failed += u64::from(sample.ending == Ending::Failed);
            self.unknown += u64::from(sample.ending == Ending::Unknown);
            self.retries += u64::from(sample.retries);
        }
    }

    pub fn on_lost(&mut self, at_us: u64) {
        self.gaps.on_lost(at_us);
    }

    pub fn on_reopened(&mut self) {
        self.gaps.on_reopened();
    }

    pub fn on_first_begun(&mut self, at_us: u64) {
        self.gaps.on_first_begun(at_us);
    }

    pub fn on_first_ended(&mut self) {
        self.gaps.on_first_ended();
    }

    pub fn on_abandoned(&mut self) {
        self.gaps.on_abandoned();
    }

    #[must_use]
    pub fn totals(&self) -> Totals {
        let Self {
            done,
            failed,
            retries,
            unknown,
            ..
        } = *self;
        Totals {
            done,
            failed,
            retries,
            unknown,
        }
    }

    /// Mean New-Orders per minute in the `window` seconds before second `second`. At the start of
    /// the run, there are fewer seconds.
    #[must_use]
    pub fn new_orders_per_min(&self, second: usize, window: usize) -> f64 {
        let first = second.saturating_sub(window);
        let seconds = self.series.seconds.iter().take(second).skip(first);
        let orders: u32 = seconds.map(|s| s.done[Kind::NewOrder.index()]).sum();
        60.0 * f64::from(orders) / (second - first).max(1) as f64
    }

    /// Computes the quantiles of the seconds that are over at `now_us`.
    pub fn close_seconds(&mut self, now_us: u64) {
        // A slow thread may still deliver a sample of the second that has just ended.
        let over = usize::try_from(now_us / SECOND_US).unwrap_or(usize::MAX);
        self.series.close(over.saturating_sub(1));
    }
}
