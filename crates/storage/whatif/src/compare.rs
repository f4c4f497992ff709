//! Simulates rule sets on one trace under several conditions, and compares them with one stream.

use std::ops::ControlFlow;
use std::rc::Rc;

use saiga_ftl::replay::{self, Case, Options, Placement, ReplayError};
use saiga_ftl::{ConfigError, Policy};

use crate::replays::{Key, Replays};
use crate::sets::{By, Joined};

/// The options of the device that vary between runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Condition {
    pub utilisation: f64,
    pub over_provisioning: f64,
    pub policy: Policy,
    pub trim: bool,
    pub unit_pages: Option<u32>,
}

/// Values for the options of conditions, which are combined with each other.
#[derive(Debug, Clone, Copy)]
pub struct Ranges<'a> {
    pub utilisations: &'a [f64],
    pub over_provisionings: &'a [f64],
    pub policies: &'a [Policy],
    /// See [`Options::unit_pages`]; empty for the automatic size.
    pub unit_pages: &'a [u32],
    /// Whether devices receive discards. If so, and if the trace has discards, they are also
    /// simulated without.
    pub trim: bool,
}

impl Ranges<'_> {
    /// Returns every condition once, for a trace with or without discards. Conditions that only
    /// differ in the unit size are adjacent.
    #[must_use]
    pub fn conditions(&self, has_discards: bool) -> Vec<Condition> {
        let trims: &[bool] = match (self.trim, has_discards) {
            (false, _) => &[false],
            (true, false) => &[true],
            (true, true) => &[true, false],
        };
        let unit_sizes: Vec<Option<u32>> = match self.unit_pages {
            [] => vec![None],
            given => given.iter().copied().map(Some).collect(),
        };
        let mut all = Vec::new();
        for &utilisation in self.utilisations {
            for &over_provisioning in self.over_provisionings {
                for &policy in self.policies {
                    for &trim in trims {
                        all.extend(unit_sizes.iter().map(|&unit_pages| Condition {
                            utilisation,
                            over_provisioning,
                            policy,
                            trim,
                            unit_pages,
                        }));
                    }
                }
            }
        }
        let mut each_once: Vec<Condition> = Vec::with_capacity(all.len());
        for condition in all {
            if !each_once.contains(&condition) {
                each_once.push(condition);
            }
        }
        each_once
    }
}

impl Condition {
    /// Returns the device under this condition.
    #[must_use]
    pub fn device(&self, base: &Options) -> Options {
        let Self {
            utilisation,
            over_provisioning,
            policy,
            trim,
            unit_pages,
        } = *self;
        Options {
            utilisation,
            over_provisioning,
            policy,
            trim,
            unit_pages,
            ..base.clone()
        }
    }

    /// Whether two conditions only differ in the unit size.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        let unit_pages = self.unit_pages;
        *self
            == Self {
                unit_pages,
                ..*other
            }
    }
}

/// The simulation of a rule set under a placement and a condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub condition: Condition,
    /// The name of the rule set, or `none`.
    pub set: String,
    pub by: By,
    pub placement: Placement,
    /// Whether this is the placement by known death times instead of a rule set.
    pub is_oracle: bool,
    /// The files that were left out of the trace.
    pub without: Option<Rc<str>>,
    pub case: Rc<Case>,
}

/// The name of the placement by known death times.
pub const ORACLE: &str = "(oracle)";

impl Run {
    /// Whether the run is of a rule set: neither one stream nor the oracle.
    #[must_use]
    pub fn is_of_rules(&self) -> bool {
        self.placement != Placement::OneStream && !self.is_oracle
    }

    /// Returns the name of the set, with `by` unless it is [`By::Stream`], and with left-out files:
    /// `mysql, by hint, without doublewrite`.
    #[must_use]
    pub fn label(&self) -> String {
        label(&self.set, self.by, self.without.as_deref())
    }

    /// Returns the name of the set, with left-out files.
    #[must_use]
    pub fn name(&self) -> String {
        label(&self.set, By::Stream, self.without.as_deref())
    }

    /// Whether other runs are compared with this one: the whole trace in one stream.
    #[must_use]
    pub fn is_base(&self) -> bool {
        self.placement == Placement::OneStream && self.without.is_none()
    }

    /// Whether two runs only differ in the condition.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        // The oracle has the best placement, which may depend on the condition.
        let is_placed_like = self.placement == other.placement || self.is_oracle;
        is_placed_like && self.is_oracle == other.is_oracle && self.label() == other.label()
    }

    /// Returns the pages that one repetition of the trace writes.
    fn host_pages(&self) -> f64 {
        let classes = self.case.classes.iter();
        classes.map(|class| class.written_pages).sum::<u64>() as f64
    }

    /// Returns the pages that are moved in one repetition.
    fn moved_pages(&self) -> f64 {
        (self.case.outcome.waf() - 1.0) * self.host_pages()
    }

    /// Returns half the range of the measured intervals; `None` with a single interval, because one
    /// repetition of the trace is longer.
    #[must_use]
    pub fn half_range(&self) -> Option<f64> {
        let outcome = &self.case.outcome;
        (outcome.intervals.len() > outcome.warm_up_intervals + 1).then(|| outcome.spread())
    }
}

fn label(set: &str, by: By, without: Option<&str>) -> String {
    let mut label = set.to_owned();
    if by != By::Stream {
        label.push_str(&format!(", by {}", by.name()));
    }
    if let Some(without) = without {
        label.push_str(&format!(", without {without}"));
    }
    label
}

/// Returns the name of a placement.
#[must_use]
pub fn placement_name(placement: Placement) -> &'static str {
    match placement {
        Placement::OneStream => "one stream",
        Placement::InitiallyIsolated => "initially isolated",
        Placement::PersistentlyIsolated => "persistently isolated",
    }
}

/// Observes the progress of runs, and may end them.
pub trait Watch {
    /// Called before each run with its number and the number of runs.
    fn begins(&mut self, number: usize, count: usize, set: &str, placement: Placement);
    /// Called repeatedly during a run; `Break` ends it.
    fn goes_on(&mut self) -> ControlFlow<()>;
}

/// A trace, whole or without some files, on devices of the same size.
#[derive(Debug)]
pub struct Variant<'a> {
    /// The left-out files; `None` for the whole trace.
    pub without: Option<Rc<str>>,
    pub replays: Replays<'a>,
}

/// Simulates for each condition and variant one stream, then every set initially and persistently
/// isolated; for the whole trace also the oracle, if it fits.
///
/// # Errors
/// A device is not valid, or `watch` ended a run.
pub fn compare(
    variants: &mut [Variant<'_>],
    none: &Joined,
    sets: &[Joined],
    conditions: &[Condition],
    watch: &mut dyn Watch,
) -> Result<Vec<Run>, ReplayError> {
    let wanted = wanted(none, sets);
    let mut left = Progress {
        number: 0,
        count: count(variants, &wanted, conditions),
        watch,
    };
    let mut runs: Vec<Run> = Vec::new();
    for &condition in conditions {
        for Variant { without, replays } in &mut *variants {
            for &(set, placement) in &wanted {
                if !replays.is_known(&Key::new(set, placement, condition)) {
                    left.begins(&label(&set.name, set.by, without.as_deref()), placement);
                }
                let go_on = &mut |_| left.watch.goes_on();
                runs.push(Run {
                    condition,
                    set: set.name.clone(),
                    by: set.by,
                    placement,
                    is_oracle: false,
                    without: without.clone(),
                    case: replays.case(set, placement, condition, go_on)?,
                });
            }
            if without.is_none() {
                left.begins(ORACLE, Placement::PersistentlyIsolated);
                runs.extend(oracle(replays, condition, left.watch)?);
            }
        }
    }
    Ok(runs)
}

/// Returns every set with every placement, beginning with one stream.
fn wanted<'a>(none: &'a Joined, sets: &'a [Joined]) -> Vec<(&'a Joined, Placement)> {
    let placements = [
        Placement::InitiallyIsolated,
        Placement::PersistentlyIsolated,
    ];
    let sets = sets.iter();
    let sets = sets.flat_map(|set| placements.map(|placement| (set, placement)));
    [(none, Placement::OneStream)]
        .into_iter()
        .chain(sets)
        .collect()
}

/// Returns the number of simulations: equal assignments are simulated once, and cached ones not at
/// all.
fn count(
    variants: &[Variant<'_>],
    wanted: &[(&Joined, Placement)],
    conditions: &[Condition],
) -> usize {
    let mut count = 0;
    for &condition in conditions {
        for Variant { without, replays } in variants {
            let mut keys: Vec<Key> = Vec::new();
            for &(set, placement) in wanted {
                let key = Key::new(set, placement, condition);
                if !replays.is_known(&key) && !keys.contains(&key) {
                    keys.push(key);
                }
            }
            count += keys.len() + usize::from(without.is_none());
        }
    }
    count
}

/// Counts the started simulations.
struct Progress<'a> {
    number: usize,
    count: usize,
    watch: &'a mut dyn Watch,
}

impl Progress<'_> {
    fn begins(&mut self, label: &str, placement: Placement) {
        self.number += 1;
        self.watch.begins(self.number, self.count, label, placement);
    }
}

/// Simulates the oracle. `None` if it does not fit: its streams need more open units than one
/// stream, and death times need memory.
fn oracle(
    replays: &Replays<'_>,
    condition: Condition,
    watch: &mut dyn Watch,
) -> Result<Option<Run>, ReplayError> {
    let device = replays.device(&condition);
    match replay::oracle(replays.footprint(), &device, &mut |_| watch.goes_on()) {
        Ok((placement, case)) => Ok(Some(Run {
            condition,
            set: ORACLE.to_owned(),
            by: By::Stream,
            placement,
            is_oracle: true,
            without: None,
            case: Rc::new(case),
        })),
        Err(ReplayError::Config(ConfigError::TooSmall { .. } | ConfigError::Memory { .. })) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Returns the run of one stream with which a run is compared: the whole trace, same condition.
#[must_use]
pub fn base<'a>(runs: &'a [Run], run: &Run) -> Option<&'a Run> {
    runs.iter()
        .find(|one| one.is_base() && one.condition == run.condition)
}

/// Returns the most that a placement can save under the condition of a run, as a share of the flash
/// writes of one stream: all moved pages.
#[must_use]
pub fn ceiling(runs: &[Run], run: &Run) -> Option<f64> {
    base(runs, run).map(|base| 1.0 - 1.0 / base.case.outcome.waf())
}

/// Returns the share of the pages moved with one stream that a run does not move; `None` if one
/// stream moves none.
#[must_use]
pub fn spared(runs: &[Run], run: &Run) -> Option<f64> {
    let moved = base(runs, run)?.moved_pages();
    (moved > 0.0).then(|| 1.0 - run.moved_pages() / moved)
}

/// Returns the flash writes of a run as a ratio to those of one stream with the whole trace.
#[must_use]
pub fn ratio(runs: &[Run], run: &Run) -> Option<f64> {
    let flash = |run: &Run| run.host_pages() + run.moved_pages();
    base(runs, run).map(|base| flash(run) / flash(base))
}

#[cfg(test)]
mod tests;
