//! Replays a trace on simulated devices under rule sets.
//!
//! The device is scaled to the trace: its live pages ([`LivePages`]) are the given share of the
//! logical space. The trace is repeated to the steady state ([`crate::steady`]). A rule set is any
//! function from file names to streams.
//!
//! Deliberately absent: parsers of rules; the caller passes the function.

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

/// Fewest reclaim units of a device with an automatic unit size.
const MIN_UNITS: u64 = 2048;
/// Smallest automatic unit size; with smaller units, greedy victims look better than on any drive.
const MIN_UNIT_PAGES: u64 = 32;

/// A trace with fewer writes per page is too short: repeated, it rewrites pages in the same order
/// each time, like a ring, and looks better than it is.
pub const FEW_WRITES_PER_PAGE: f64 = 4.0;

/// A rule set: assigns files to streams.
pub trait Rules {
    /// Returns the stream of a file, or of data without a file (`None`). 0 means no label.
    fn stream_of(&self, file: Option<&str>) -> usize;
}

impl<F: Fn(Option<&str>) -> usize> Rules for F {
    fn stream_of(&self, file: Option<&str>) -> usize {
        self(file)
    }
}

/// The separation of streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// No separation: every write goes to the same unit.
    OneStream,
    /// Separate until garbage collection moves the pages.
    InitiallyIsolated,
    /// Always separate.
    PersistentlyIsolated,
}

/// The device for a replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The mean share of the logical space with data: above 0, at most 1.
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
    /// Number of handles, at least one. Streams without a handle of their own use the first.
    pub handles: usize,
    /// Whether the device receives discards.
    pub trim: bool,
    pub length: Length,
    /// The seed of random choices.
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

/// The result of a rule set under a placement.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The accounting classes of pages.
    pub classes: Vec<Class>,
    /// The streams of files, sorted; the `i`th has handle `i`.
    pub streams: Vec<usize>,
    /// Streams that share the first handle because there are too few handles.
    pub without_handle: Vec<usize>,
    /// Logical pages of the device.
    pub logical_pages: u32,
    pub outcome: Outcome,
}

/// An error of a replay.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ReplayError {
    #[error("utilisation {value}: use a share above 0 and at most 1, as 0.9 for 90 %")]
    Utilisation { value: f64 },
    /// The most live pages do not fit; `limit` is the highest possible utilisation.
    #[error(
        "utilisation {value}: up to {most_pages} pages hold data, {mean_pages:.0} in the mean; use \
         {limit:.3} or less"
    )]
    Full {
        value: f64,
        most_pages: u32,
        mean_pages: f64,
        limit: f64,
    },
    #[error("{count} handles: use 1 to {MAX_HANDLES}")]
    Handles { count: usize },
    /// The device would have too many pages.
    #[error(
        "{pages} pages at a utilisation of {utilisation} are more than 2^32 logical pages; use \
         larger pages or a shorter trace"
    )]
    TooLarge { pages: u32, utilisation: f64 },
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The report callback ended the replay.
    #[error("interrupted")]
    Interrupted,
}

/// Replays a trace under one rule set and one placement.
///
/// # Errors
/// The device is not valid, or `report` ended the run.
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

/// Returns the configuration of the device for a trace, with one stream.
///
/// # Errors
/// The options are not valid.
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

/// Returns the largest power of two that divides the pages into at least [`MIN_UNITS`] units.
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

/// A report callback that never ends a run.
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
