//! Rule sets on one trace, under every condition that is asked for.

use std::ops::ControlFlow;

use saiga_ftl::Policy;
use saiga_ftl::replay::{self, Case, Footprint, Options, Placement, ReplayError};

use crate::sets::Joined;

/// What the device is like, beside what is the same for all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Condition {
    /// See [`Options::utilisation`].
    pub utilisation: f64,
    /// See [`Options::policy`].
    pub policy: Policy,
}

impl Condition {
    /// The device under this condition.
    #[must_use]
    pub fn device(&self, base: &Options) -> Options {
        Options {
            utilisation: self.utilisation,
            policy: self.policy,
            ..base.clone()
        }
    }
}

/// One rule set under one placement and one condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The device.
    pub condition: Condition,
    /// The rule set: `none`, or the name of one of those given.
    pub set: String,
    /// How streams are kept apart.
    pub placement: Placement,
    /// What was found.
    pub case: Case,
}

impl Run {
    /// Half the range of the intervals of the measurement; `None` when there is one only, because a repetition of the trace
    /// is longer than that.
    #[must_use]
    pub fn half_range(&self) -> Option<f64> {
        let outcome = &self.case.outcome;
        (outcome.intervals.len() > outcome.warm_up_intervals + 1).then(|| outcome.spread())
    }
}

/// What a placement is called.
#[must_use]
pub fn placement_name(placement: Placement) -> &'static str {
    match placement {
        Placement::OneStream => "one stream",
        Placement::InitiallyIsolated => "initially isolated",
        Placement::PersistentlyIsolated => "persistently isolated",
    }
}

/// Told before each run: its number, how many there are, and what it is. Asked during it whether to go on.
pub trait Watch {
    /// The next run begins.
    fn begins(&mut self, number: usize, count: usize, set: &str, placement: Placement);
    /// Whether to go on.
    fn goes_on(&mut self) -> ControlFlow<()>;
}

/// For each condition one stream, then every set initially and persistently isolated.
///
/// # Errors
/// A device cannot be, or `watch` ended it.
pub fn compare(
    footprint: &Footprint,
    none: &Joined,
    sets: &[Joined],
    conditions: &[Condition],
    base: &Options,
    watch: &mut dyn Watch,
) -> Result<Vec<Run>, ReplayError> {
    let mut wanted = vec![(none, Placement::OneStream)];
    for set in sets {
        wanted.push((set, Placement::InitiallyIsolated));
        wanted.push((set, Placement::PersistentlyIsolated));
    }
    let count = wanted.len() * conditions.len();
    let mut runs = Vec::with_capacity(count);
    for condition in conditions {
        let options = condition.device(base);
        for (set, placement) in &wanted {
            watch.begins(runs.len() + 1, count, &set.name, *placement);
            let case = replay::replay(footprint, *set, *placement, &options, &mut |_| {
                watch.goes_on()
            })?;
            runs.push(Run {
                condition: *condition,
                set: set.name.clone(),
                placement: *placement,
                case,
            });
        }
    }
    Ok(runs)
}

/// The one stream that a run is compared with.
#[must_use]
pub fn base<'a>(runs: &'a [Run], run: &Run) -> Option<&'a Run> {
    let is_base =
        |one: &&Run| one.placement == Placement::OneStream && one.condition == run.condition;
    runs.iter().find(is_base)
}

/// What a run writes to flash, of what one stream does.
#[must_use]
pub fn ratio(runs: &[Run], run: &Run) -> Option<f64> {
    base(runs, run).map(|base| run.case.outcome.waf() / base.case.outcome.waf())
}
