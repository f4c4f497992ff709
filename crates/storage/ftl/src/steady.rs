//! Runs a workload from an erased device to the steady state, and measures there.
//!
//! After the fill, which does not count, come [`WARM_UP`] times the logical size in host writes, in
//! intervals whose write amplification shows the approach to the steady state, then the
//! measurement.

use std::ops::ControlFlow;

use crate::counters::Counters;
use crate::device::{Device, Occupancy};
use crate::workload::Workload;

/// Host writes before the measurement, in multiples of the logical size (U).
pub const WARM_UP: u32 = 8;
/// Measured host writes, in multiples of the logical size.
pub const MEASURED: u32 = 4;

/// The length of a run, in multiples of the logical size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Length {
    pub warm_up: u32,
    pub measured: u32,
}

impl Default for Length {
    fn default() -> Self {
        Self {
            warm_up: WARM_UP,
            measured: MEASURED,
        }
    }
}

/// An interval of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    pub host_pages: u64,
    pub waf: f64,
    pub counted: Counters,
    /// The occupancy of the frontiers at its end.
    pub occupancy: Vec<Occupancy>,
    /// The mixing of classes within units at its end: see [`Device::mixing_bits`].
    pub mixing_bits: f64,
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Intervals of the warm-up, then of the measurement, about U writes each.
    pub intervals: Vec<Interval>,
    pub warm_up_intervals: usize,
    /// Host writes of the warm-up, without the fill.
    pub warm_up_pages: u64,
    /// Repetitions of the workload in the warm-up and in the measurement.
    pub repetitions: [u64; 2],
    pub measured: Counters,
    /// The occupancy of the frontiers at the end.
    pub occupancy: Vec<Occupancy>,
}

impl Outcome {
    /// Returns write amplification in the steady state.
    #[must_use]
    pub fn waf(&self) -> f64 {
        self.measured.waf().unwrap_or(1.0)
    }

    /// Returns the mixing of classes within units at the end: see [`Device::mixing_bits`].
    #[must_use]
    pub fn mixing_bits(&self) -> f64 {
        self.intervals.last().map_or(0.0, |it| it.mixing_bits)
    }

    /// Returns half the range of the measured intervals, which shows how steady the state is.
    #[must_use]
    pub fn spread(&self) -> f64 {
        let measured = &self.intervals[self.warm_up_intervals..];
        let most = measured
            .iter()
            .map(|it| it.waf)
            .fold(f64::NEG_INFINITY, f64::max);
        let least = measured
            .iter()
            .map(|it| it.waf)
            .fold(f64::INFINITY, f64::min);
        if most >= least {
            (most - least) / 2.0
        } else {
            0.0
        }
    }
}

/// Called with the completed share of a run, from 0 to 1; `Break` ends it.
pub type Report<'a> = &'a mut dyn FnMut(f64) -> ControlFlow<()>;

/// Fills the device, warms it up and measures. `None` if `report` ended it.
///
/// Warm-up and measurement are at least `length`, rounded up to whole repetitions.
pub fn run(
    device: &mut Device,
    workload: &mut dyn Workload,
    length: Length,
    report: Report<'_>,
) -> Option<Outcome> {
    workload.fill(device);
    let period = workload.period().max(1);
    let size = u64::from(device.config().logical_pages);
    let step = size.div_ceil(period) * period;
    let repetitions = [length.warm_up, length.measured.max(1)]
        .map(|times| (size * u64::from(times)).div_ceil(period));
    let [warm_up_pages, measured_pages] = repetitions.map(|count| count * period);
    let mut intervals = Vec::new();
    let mut done = 0;
    let mut measure = |device: &mut Device, end: u64| {
        let begin = device.counters().clone();
        while done < end {
            let pages = step.min(end - done);
            let before = device.counters().clone();
            workload.advance(device, pages);
            done += pages;
            let counted = device.counters().since(&before);
            intervals.push(Interval {
                host_pages: pages,
                waf: counted.waf().unwrap_or(1.0),
                counted,
                occupancy: device.occupancy(),
                mixing_bits: device.mixing_bits(),
            });
            let share = done as f64 / (warm_up_pages + measured_pages) as f64;
            if report(share).is_break() {
                return None;
            }
        }
        Some((device.counters().since(&begin), intervals.len()))
    };
    let (_, warm_up_intervals) = measure(device, warm_up_pages)?;
    let (measured, _) = measure(device, warm_up_pages + measured_pages)?;
    Some(Outcome {
        intervals,
        warm_up_intervals,
        warm_up_pages,
        repetitions,
        measured,
        occupancy: device.occupancy(),
    })
}
