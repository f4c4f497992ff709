//! Rule sets on one trace, under every condition that is asked for.

use std::ops::ControlFlow;
use std::rc::Rc;

use saiga_ftl::replay::{self, Case, Options, Placement, ReplayError};
use saiga_ftl::{ConfigError, Policy};

use crate::replays::{Key, Replays};
use crate::sets::{By, Joined};

/// What the device is like, beside what is the same for all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Condition {
    /// See [`Options::utilisation`].
    pub utilisation: f64,
    /// See [`Options::over_provisioning`].
    pub over_provisioning: f64,
    /// See [`Options::policy`].
    pub policy: Policy,
    /// See [`Options::trim`].
    pub trim: bool,
    /// See [`Options::unit_pages`].
    pub unit_pages: Option<u32>,
}

/// Values of which each is combined with each of the others.
#[derive(Debug, Clone, Copy)]
pub struct Ranges<'a> {
    /// See [`Options::utilisation`].
    pub utilisations: &'a [f64],
    /// See [`Options::over_provisioning`].
    pub over_provisionings: &'a [f64],
    /// See [`Options::policy`].
    pub policies: &'a [Policy],
    /// See [`Options::unit_pages`]; none at all is the size that is chosen.
    pub unit_pages: &'a [u32],
    /// Whether devices are told of discards; if so, they are also simulated without, where the
    /// trace has some.
    pub trim: bool,
}

impl Ranges<'_> {
    /// Every condition once, for a trace with or without discards. Those that differ in the size of
    /// units only stand together.
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
    /// The device under this condition.
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

    /// Whether only the size of the units is another.
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
    /// What was left out of the trace.
    pub without: Option<Rc<str>>,
    /// What was found.
    pub case: Rc<Case>,
}

/// What the placement by known death times is called.
pub const ORACLE: &str = "(oracle)";

impl Run {
    /// Whether it is of a rule set: neither one stream nor the oracle.
    #[must_use]
    pub fn is_of_rules(&self) -> bool {
        self.placement != Placement::OneStream && !self.is_oracle
    }

    /// The set, what told its streams apart where that is not the `stream` of its rules, and what
    /// was left out of the trace: `mysql, by hint, without doublewrite`.
    #[must_use]
    pub fn label(&self) -> String {
        label(&self.set, self.by, self.without.as_deref())
    }

    /// The set, and what was left out of the trace.
    #[must_use]
    pub fn name(&self) -> String {
        label(&self.set, By::Stream, self.without.as_deref())
    }

    /// Whether it is what others are compared with: the whole trace in one stream.
    #[must_use]
    pub fn is_base(&self) -> bool {
        self.placement == Placement::OneStream && self.without.is_none()
    }

    /// Whether only the condition is another.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        // The oracle has the placement that is best.
        let is_placed_like = self.placement == other.placement || self.is_oracle;
        is_placed_like && self.is_oracle == other.is_oracle && self.label() == other.label()
    }

    /// Pages that one repetition of the trace writes.
    fn host_pages(&self) -> f64 {
        let classes = self.case.classes.iter();
        classes.map(|class| class.written_pages).sum::<u64>() as f64
    }

    /// Pages that are moved in one repetition.
    fn moved_pages(&self) -> f64 {
        (self.case.outcome.waf() - 1.0) * self.host_pages()
    }

    /// Half the range of the intervals of the measurement; `None` when there is one only, because a repetition of the trace
    /// is longer than that.
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

/// A trace, or what is left of it, on devices of the same size.
#[derive(Debug)]
pub struct Variant<'a> {
    /// What was left out; `None` is the whole trace.
    pub without: Option<Rc<str>>,
    /// What is left.
    pub replays: Replays<'a>,
}

/// For each condition and each variant one stream, then every set initially and persistently
/// isolated; for the whole trace then the oracle, where it fits.
///
/// # Errors
/// A device cannot be, or `watch` ended it.
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

/// Every set under every placement; one stream first.
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

/// How many simulations there will be: what is placed alike is simulated once, and what is known,
/// not at all.
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

/// The simulations that were begun.
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

/// `None` where it does not fit: a device with room for one stream has none for so many, and deaths
/// take memory, too.
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

/// The one stream that a run is compared with: all of the trace, under the same condition.
#[must_use]
pub fn base<'a>(runs: &'a [Run], run: &Run) -> Option<&'a Run> {
    runs.iter()
        .find(|one| one.is_base() && one.condition == run.condition)
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
    let moved = base(runs, run)?.moved_pages();
    (moved > 0.0).then(|| 1.0 - run.moved_pages() / moved)
}

/// What a run writes to flash, of what one stream does with the whole trace.
#[must_use]
pub fn ratio(runs: &[Run], run: &Run) -> Option<f64> {
    let flash = |run: &Run| run.host_pages() + run.moved_pages();
    base(runs, run).map(|base| flash(run) / flash(base))
}

#[cfg(test)]
mod tests;
