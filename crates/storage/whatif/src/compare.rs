//! Rule sets on one trace, under every condition that is asked for.

use std::ops::ControlFlow;

use saiga_ftl::replay::{self, Case, Footprint, Options, Placement, ReplayError};
use saiga_ftl::{ConfigError, Policy};

use crate::sets::{By, Joined};

/// What the device is like, beside what is the same for all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Condition {
    /// See [`Options::utilisation`].
    pub utilisation: f64,
    /// See [`Options::unit_pages`].
    pub unit_pages: Option<u32>,
    /// See [`Options::policy`].
    pub policy: Policy,
    /// See [`Options::trim`].
    pub trim: bool,
}

impl Condition {
    /// The device under this condition.
    #[must_use]
    pub fn device(&self, base: &Options) -> Options {
        Options {
            utilisation: self.utilisation,
            unit_pages: self.unit_pages,
            policy: self.policy,
            trim: self.trim,
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
    /// What told its streams apart.
    pub by: By,
    /// How streams are kept apart.
    pub placement: Placement,
    /// Whether this is not a rule set but a placement by known death times.
    pub is_oracle: bool,
    /// What was found.
    pub case: Case,
}

/// What the placement by known death times is called.
pub const ORACLE: &str = "(oracle)";

impl Run {
    /// Whether it is of a rule set: neither one stream nor the oracle.
    #[must_use]
    pub fn is_of_rules(&self) -> bool {
        self.placement != Placement::OneStream && !self.is_oracle
    }

    /// The set, and what told its streams apart where that is not the `stream` of its rules:
    /// `mysql, by hint`.
    #[must_use]
    pub fn label(&self) -> String {
        label(&self.set, self.by)
    }

    /// Half the range of the intervals of the measurement; `None` when there is one only, because a repetition of the trace
    /// is longer than that.
    #[must_use]
    pub fn half_range(&self) -> Option<f64> {
        let outcome = &self.case.outcome;
        (outcome.intervals.len() > outcome.warm_up_intervals + 1).then(|| outcome.spread())
    }
}

/// A set with what tells its streams apart, where that is not the `stream` of its rules.
#[must_use]
pub fn label(set: &str, by: By) -> String {
    match by {
        By::Stream => set.to_owned(),
        By::Hint | By::F2fs => format!("{set}, by {}", by.name()),
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

/// For each condition one stream, then every set initially and persistently isolated, then the
/// oracle where it fits. What places every file as another one of the same name does, such as
/// astream's rules by hint, is simulated once.
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
    let wanted = wanted(none, sets);
    // The last one is the oracle.
    let each = wanted.iter().filter(|one| one.like.is_none()).count() + 1;
    let count = each * conditions.len();
    let mut number = 0;
    let mut runs: Vec<Run> = Vec::with_capacity(wanted.len() * conditions.len());
    for condition in conditions {
        let options = condition.device(base);
        let first = runs.len();
        for Wanted {
            set,
            placement,
            like,
        } in &wanted
        {
            let case = match like.and_then(|like| runs.get(first + like)) {
                Some(run) => run.case.clone(),
                None => {
                    number += 1;
                    watch.begins(number, count, &label(&set.name, set.by), *placement);
                    let go_on = &mut |_| watch.goes_on();
                    replay::replay(footprint, *set, *placement, &options, go_on)?
                }
            };
            runs.push(Run {
                condition: *condition,
                set: set.name.clone(),
                by: set.by,
                placement: *placement,
                is_oracle: false,
                case,
            });
        }
        number += 1;
        watch.begins(number, count, ORACLE, Placement::PersistentlyIsolated);
        match replay::oracle(footprint, &options, &mut |_| watch.goes_on()) {
            Ok((placement, case)) => runs.push(Run {
                condition: *condition,
                set: ORACLE.to_owned(),
                by: By::Stream,
                placement,
                is_oracle: true,
                case,
            }),
            // A device with room for one stream only has none for so many, and deaths take memory,
            // too.
            Err(ReplayError::Config(ConfigError::TooSmall { .. } | ConfigError::Memory { .. })) => {
            }
            Err(error) => return Err(error),
        }
    }
    Ok(runs)
}

/// One simulation under each condition.
struct Wanted<'a> {
    set: &'a Joined,
    placement: Placement,
    /// An earlier one that has the same result.
    like: Option<usize>,
}

fn wanted<'a>(none: &'a Joined, sets: &'a [Joined]) -> Vec<Wanted<'a>> {
    let mut wanted = vec![Wanted {
        set: none,
        placement: Placement::OneStream,
        like: None,
    }];
    for set in sets {
        for placement in [
            Placement::InitiallyIsolated,
            Placement::PersistentlyIsolated,
        ] {
            let is_like = |one: &Wanted<'_>| {
                let is_same = one.placement == placement && one.set.name == set.name;
                is_same && one.set.is_placed_like(set)
            };
            let like = wanted.iter().position(is_like);
            wanted.push(Wanted {
                set,
                placement,
                like,
            });
        }
    }
    wanted
}

/// The one stream that a run is compared with.
#[must_use]
pub fn base<'a>(runs: &'a [Run], run: &Run) -> Option<&'a Run> {
    let is_base =
        |one: &&Run| one.placement == Placement::OneStream && one.condition == run.condition;
    runs.iter().find(is_base)
}

/// The most that any placement can save under the condition of a run, as a share of what one stream
/// writes to flash: all that is moved.
#[must_use]
pub fn ceiling(runs: &[Run], run: &Run) -> Option<f64> {
    base(runs, run).map(|base| 1.0 - 1.0 / base.case.outcome.waf())
}

/// The share of the pages moved under one stream that a run does not move; `None` where one stream
/// moves none.
#[must_use]
pub fn spared(runs: &[Run], run: &Run) -> Option<f64> {
    let base = base(runs, run)?.case.outcome.waf() - 1.0;
    (base > 0.0).then(|| 1.0 - (run.case.outcome.waf() - 1.0) / base)
}

/// What a run writes to flash, of what one stream does.
#[must_use]
pub fn ratio(runs: &[Run], run: &Run) -> Option<f64> {
    base(runs, run).map(|base| run.case.outcome.waf() / base.case.outcome.waf())
}
