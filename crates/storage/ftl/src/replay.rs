//! A trace on simulated devices: how would rule sets have placed it, and at what cost?
//!
//! The device is scaled to the trace: the pages that hold data at a time ([`LivePages`]) are the
//! given share of the logical space. The trace is repeated to the steady state ([`crate::steady`]).
//! A rule set is any function from file names to streams.
//!
//! Deliberately absent: parsers of rules; whoever has rules brings the function.

mod classes;
mod footprint;
mod live;
mod oracle;
mod player;
mod sample;

use std::ops::ControlFlow;

pub use classes::{Class, MAX_STREAMS};
pub use footprint::{Footprint, FootprintError, Totals};
pub use live::LivePages;
pub use oracle::oracle;

use crate::config::{
    Config, ConfigError, Counting, GcFrontier, Isolation, MAX_HANDLES, Policy, Quota,
};
use crate::device::Device;
use crate::steady::{self, Length, Outcome, Report};
use classes::Classes;
use player::Player;

/// Fewest reclaim units of a device whose unit size is chosen here.
const MIN_UNITS: u64 = 2048;
/// Smallest unit that is chosen here: below, greedy victims look better than on any drive.
const MIN_UNIT_PAGES: u64 = 32;

/// A trace that writes its pages less often than this in the mean says too little: repeated, it
/// rewrites them in the same order each time, as a ring would, and looks better than it is.
pub const FEW_WRITES_PER_PAGE: f64 = 4.0;

/// Which stream a file is written to.
pub trait Rules {
    /// The stream of a file; `None` is what belongs to no file. Any number, 0 for no label.
    fn stream_of(&self, file: Option<&str>) -> usize;
}

impl<F: Fn(Option<&str>) -> usize> Rules for F {
    fn stream_of(&self, file: Option<&str>) -> usize {
        self(file)
    }
}

/// How streams are kept apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Not at all: every write goes to the same unit.
    OneStream,
    /// Until garbage collection moves the pages.
    InitiallyIsolated,
    /// For ever.
    PersistentlyIsolated,
}

/// The device that a trace is replayed on.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The share of the logical space that holds data, in the mean: above 0, at most 1.
    pub utilisation: f64,
    /// See [`Config::over_provisioning`].
    pub over_provisioning: f64,
    /// Pages of a reclaim unit; `None` for the largest that leaves 2048 units, 32 at least.
    pub unit_pages: Option<u32>,
    /// See [`Config::counting`].
    pub counting: Counting,
    /// See [`Config::policy`].
    pub policy: Policy,
    /// See [`Config::quota`].
    pub quota: Quota,
    /// See [`Config::gc`].
    pub gc: GcFrontier,
    /// Handles that the device has, at least one; streams without one of their own use the first.
    pub handles: usize,
    /// Whether the device is told of discards.
    pub trim: bool,
    /// How long to run.
    pub length: Length,
    /// Where random choices begin.
    pub seed: u64,
    /// See [`Config::memory_bytes`].
    pub memory_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            utilisation: 0.9,
            over_provisioning: 0.07,
            unit_pages: None,
            counting: Counting::WholeDevice,
            policy: Policy::Greedy,
            quota: Quota::None,
            gc: GcFrontier::Own,
            handles: 8,
            trim: true,
            length: Length::default(),
            seed: 1,
            memory_bytes: u64::MAX,
        }
    }
}

/// One rule set under one placement.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The classes that pages were accounted by.
    pub classes: Vec<Class>,
    /// The streams that files were assigned to, in order; handle `i` served the `i`th.
    pub streams: Vec<usize>,
    /// Those that had to share the first handle because there were no more.
    pub without_handle: Vec<usize>,
    /// Logical pages of the device.
    pub logical_pages: u32,
    /// What was found.
    pub outcome: Outcome,
}

/// Why a trace was not replayed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ReplayError {
    /// The share is none.
    #[error("utilisation {value}: use a share above 0 and at most 1, as 0.9 for 90 %")]
    Utilisation {
        /// What was asked for.
        value: f64,
    },
    /// Not all that is live at a time would fit.
    #[error(
        "utilisation {value}: at times {most_pages} pages hold data, {mean_pages:.0} in the mean; use {limit:.3} or less"
    )]
    Full {
        /// What was asked for.
        value: f64,
        /// The most pages at a time.
        most_pages: u32,
        /// The mean.
        mean_pages: f64,
        /// The highest utilisation that has room for all.
        limit: f64,
    },
    /// There is nothing to write to.
    #[error("{count} handles: use 1 to {MAX_HANDLES}")]
    Handles {
        /// What was asked for.
        count: usize,
    },
    /// The device would have too many pages.
    #[error(
        "{pages} pages at a utilisation of {utilisation} are more than 2^32 logical pages; use larger pages \
         or a shorter trace"
    )]
    TooLarge {
        /// Pages of the trace that hold data at a time.
        pages: u32,
        /// What was asked for.
        utilisation: f64,
    },
    /// There is no such device.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// `report` ended it.
    #[error("interrupted")]
    Interrupted,
}

/// Replays a trace under one rule set and one placement.
///
/// # Errors
/// The device cannot be, or `report` ended the run.
pub fn replay(
    footprint: &Footprint,
    rules: &dyn Rules,
    placement: Placement,
    options: &Options,
    report: Report<'_>,
) -> Result<Case, ReplayError> {
    let mut classes = Classes::of(footprint, rules);
    if placement == Placement::OneStream {
        classes.join_streams();
    }
    let streams = classes.streams();
    let served = streams.len().min(options.handles);
    let isolation = match placement {
        Placement::PersistentlyIsolated => Isolation::Persistently,
        Placement::OneStream | Placement::InitiallyIsolated => Isolation::Initially,
    };
    let handle = |stream: usize| if stream < served { stream } else { 0 };
    let mut config = device(footprint, options)?;
    config.handles = vec![isolation; served];
    config.streams = (0..streams.len()).map(handle).collect();
    config.classes = classes.stream_numbers(&streams);
    let mut device = Device::new(config)?;
    let logical_pages = device.config().logical_pages;
    let class_of = |file| classes.of_file(file);
    let mut player = Player::new(footprint, &class_of, options.trim, logical_pages);
    let outcome = steady::run(&mut device, &mut player, options.length, report);
    Ok(Case {
        outcome: outcome.ok_or(ReplayError::Interrupted)?,
        classes: classes.into_list(),
        without_handle: streams[served..].to_vec(),
        logical_pages: device.config().logical_pages,
        streams,
    })
}

/// The device that a trace is replayed on, with one stream.
///
/// # Errors
/// The options allow none.
pub fn device(footprint: &Footprint, options: &Options) -> Result<Config, ReplayError> {
    let Options {
        utilisation,
        over_provisioning,
        unit_pages,
        counting,
        policy,
        quota,
        gc,
        handles,
        trim: _,
        length: _,
        seed,
        memory_bytes,
    } = *options;
    if !(utilisation > 0.0 && utilisation <= 1.0) {
        let value = utilisation;
        return Err(ReplayError::Utilisation { value });
    }
    if !(1..=MAX_HANDLES).contains(&handles) {
        return Err(ReplayError::Handles { count: handles });
    }
    let live = footprint.live();
    let pages = live.most;
    let logical = (footprint.sized_by / utilisation).ceil();
    if logical < f64::from(pages) {
        return Err(ReplayError::Full {
            value: utilisation,
            most_pages: pages,
            mean_pages: live.mean,
            limit: (live.mean / f64::from(pages) * 1000.0).floor() / 1000.0,
        });
    }
    if logical >= f64::from(u32::MAX) {
        return Err(ReplayError::TooLarge { pages, utilisation });
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked above"
    )]
    let logical_pages = logical as u32;
    Ok(Config {
        unit_pages: unit_pages.unwrap_or_else(|| unit_size(logical * (1.0 + over_provisioning))),
        counting,
        policy,
        quota,
        gc,
        seed,
        memory_bytes,
        ..Config::plain(logical_pages, over_provisioning, 0)
    })
}

/// The largest power of two that divides so many pages into [`MIN_UNITS`] or more.
fn unit_size(physical_pages: f64) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates"
    )]
    let most = physical_pages as u64 / MIN_UNITS;
    let most = u32::try_from(most.clamp(MIN_UNIT_PAGES, 1 << 20)).unwrap_or(1 << 20);
    1 << most.ilog2()
}

/// A report that never ends a run.
pub fn silent(_share: f64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_a_power_of_two_and_many() {
        for (pages, expected) in [
            (1000.0, 32),
            (65_536.0, 32),
            (131_071.0, 32),
            (131_072.0, 64),
            (1e6, 256),
            (4e9, 1 << 20),
            (f64::NAN, 32),
        ] {
            assert_eq!(unit_size(pages), expected, "{pages}");
        }
    }
}
