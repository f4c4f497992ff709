//! The books of a run: every transaction is entered once, into its phase, type and second.

use super::gaps::Gaps;
use super::series::Series;
use super::track::{Phase, Tally, Track, TrackName};
use crate::driver::clock::SECOND_US;
use crate::driver::sample::{Ending, Sample};
use crate::spec::deck::Kind;

/// The books.
#[derive(Debug)]
pub struct Ledger {
    interval: Interval,
    /// By phase and type.
    pub(crate) tracks: [[Track; 6]; 3],
    /// Of the measured phase.
    pub(crate) tally: Tally,
    pub(crate) series: Series,
    pub(crate) gaps: Gaps,
    /// End of the last transaction that was entered.
    pub(crate) last_us: u64,
    done: u64,
    failed: u64,
    retries: u64,
    unknown: u64,
}

/// What is measured, in microseconds since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// When the ramp-up ends; `None` as long as nobody knows.
    pub from_us: Option<u64>,
    /// Where the measured interval ends.
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

/// Sums over all phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sums {
    /// Done.
    pub done: u64,
    /// Failed.
    pub failed: u64,
    /// Attempts after conflicts.
    pub retries: u64,
    /// Lost with their connections.
    pub unknown: u64,
}

impl Ledger {
    /// Empty books; with histograms in each second when they are to be added to others.
    #[must_use]
    pub fn new(interval: Interval, keeps_histograms: bool) -> Self {
        Self {
            interval,
            tracks: Default::default(),
            tally: Tally::default(),
            series: Series::new(keeps_histograms),
            gaps: Gaps::default(),
            last_us: 0,
            done: 0,
            failed: 0,
            retries: 0,
            unknown: 0,
        }
    }

    /// What is measured.
    #[must_use]
    pub fn interval(&self) -> Interval {
        self.interval
    }

    /// Changes what is measured, for transactions that are entered from now on.
    pub fn set_interval(&mut self, interval: Interval) {
        self.interval = interval;
    }

    /// Enters transactions, in the order in which they ended.
    pub fn take(&mut self, samples: &[Sample]) {
        for sample in samples {
            self.last_us = self.last_us.max(sample.ended_us);
            let phase = self.interval.phase(sample);
            let track = &mut self.tracks[phase.index()][TrackName::of(sample).index()];
            track.take(sample);
            self.series.take(sample);
            if sample.is_done() {
                self.done += 1;
                self.gaps.on_done(sample.ended_us);
                if phase == Phase::Measured && !sample.deferred {
                    self.tally.take(sample);
                }
            }
            self.failed += u64::from(sample.ending == Ending::Failed);
            self.unknown += u64::from(sample.ending == Ending::Unknown);
            self.retries += u64::from(sample.retries);
        }
    }

    /// A connection was lost.
    pub fn on_lost(&mut self, at_us: u64) {
        self.gaps.on_lost(at_us);
    }

    /// A connection that was lost is open again.
    pub fn on_opened(&mut self) {
        self.gaps.on_opened();
    }

    /// The first transaction on a connection that is open again begins.
    pub fn on_begun(&mut self, at_us: u64) {
        self.gaps.on_begun(at_us);
    }

    /// That transaction has ended.
    pub fn on_ended(&mut self) {
        self.gaps.on_ended();
    }

    /// A connection that was lost is not wanted any more.
    pub fn on_left(&mut self) {
        self.gaps.on_left();
    }

    /// Sums over all phases so far.
    #[must_use]
    pub fn sums(&self) -> Sums {
        let Self {
            done,
            failed,
            retries,
            unknown,
            ..
        } = *self;
        Sums {
            done,
            failed,
            retries,
            unknown,
        }
    }

    /// New-Orders per minute in the seconds before `second`, up to `window` of them.
    #[must_use]
    pub fn new_orders_per_min(&self, second: usize, window: usize) -> f64 {
        let first = second.saturating_sub(window);
        let seconds = self.series.seconds.iter().take(second).skip(first);
        let orders: u32 = seconds.map(|s| s.done[Kind::NewOrder.index()]).sum();
        60.0 * f64::from(orders) / (second - first).max(1) as f64
    }

    /// Seconds that are over at `now_us` get their quantiles.
    pub fn close_seconds(&mut self, now_us: u64) {
        // The one that has just ended may still get a transaction of a slow thread.
        let over = usize::try_from(now_us / SECOND_US).unwrap_or(usize::MAX);
        self.series.close(over.saturating_sub(1));
    }
}
