//! From an erased device to its steady state, and what is measured there.
//!
//! The fill does not count. Then come [`WARM_UP`] times the logical size in host writes, in
//! intervals whose write amplification shows how it settled, and then the measurement.

use std::ops::ControlFlow;

use crate::counters::Counters;
use crate::device::{Device, Occupancy};
use crate::workload::Workload;

/// Host writes before the measurement, in multiples of the logical size (U).
pub const WARM_UP: u32 = 8;
/// Host writes that are measured, in multiples of the logical size.
pub const MEASURED: u32 = 4;

/// How long to run, in multiples of the logical size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Length {
    /// Before the measurement.
    pub warm_up: u32,
    /// The measurement.
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

/// A stretch of the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// Pages that the host wrote.
    pub host_pages: u64,
    /// Write amplification.
    pub waf: f64,
    /// All that was counted in it.
    pub counted: Counters,
    /// What the frontiers held at its end.
    pub occupancy: Vec<Occupancy>,
    /// How mixed classes were within units at its end: see [`Device::mixing_bits`].
    pub mixing_bits: f64,
}

/// What a run found.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The warm-up, then the measurement, about U writes each.
    pub intervals: Vec<Interval>,
    /// How many of them are the warm-up.
    pub warm_up_intervals: usize,
    /// Pages that the host wrote as warm-up, the fill not counted.
    pub warm_up_pages: u64,
    /// Repetitions of the workload in the warm-up and in the measurement.
    pub repetitions: [u64; 2],
    /// The measurement.
    pub measured: Counters,
    /// What the frontiers held at its end.
    pub occupancy: Vec<Occupancy>,
}

impl Outcome {
    /// Write amplification in the steady state.
    #[must_use]
    pub fn waf(&self) -> f64 {
        self.measured.waf().unwrap_or(1.0)
    }

    /// How mixed classes are within units at the end: see [`Device::mixing_bits`].
    #[must_use]
    pub fn mixing_bits(&self) -> f64 {
        self.intervals.last().map_or(0.0, |it| it.mixing_bits)
    }

    /// Half the distance between the greatest and the least interval of the measurement: how
    /// steady the state is.
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

/// Told the share of a run that is done, from 0 to 1; may end it.
pub type Report<'a> = &'a mut dyn FnMut(f64) -> ControlFlow<()>;

/// Fills the device, warms it up and measures; `None` when `report` ended it.
///
/// Warm-up and measurement are of at least `length`, rounded up to whole repetitions.
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
