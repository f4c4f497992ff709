//! Compares suggested rules with the known sets on the whole trace: a search on a sample under one
//! condition may find worse rules.
//!
//! The comparison is that of `simulate`: under every condition, initially and persistently
//! isolated, by the streams of the rules and by their hints.

use std::ops::ControlFlow;

use saiga_document::number;
use saiga_ftl::replay::{Placement, ReplayError};
use saiga_ftl::trace::Trace;
use saiga_streams::rules::Rules;

use super::search::{GAIN, Stop};
use super::{Report, Step};
use crate::compare::Condition;
use crate::replays::Replays;
use crate::sets::{self, By, Joined, Kind, Set};

/// The result of the suggested rules on the whole trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Whole {
    /// Write amplification of one stream under the first condition.
    pub none: f64,
    /// Write amplification by the streams of the rules: the mean of both isolations.
    pub by_stream: f64,
    /// Write amplification by the hints of the rules: the mean of both isolations.
    pub by_hint: f64,
    /// Number of comparisons with each known set.
    pub compared: usize,
    /// The known set that replaces the result of the search because it is better.
    pub kept: Option<Kept>,
}

/// A known set that replaces the result of the search.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    /// The name of the set.
    pub set: String,
    /// Number of comparisons in which the result of the search was worse than a known set.
    pub worse: usize,
    /// The largest difference as a share; infinite if the streams of the search do not fit on a
    /// device that the set fits on.
    pub most: f64,
}

impl Whole {
    /// Describes the result in one or two sentences.
    #[must_use]
    pub fn summary(&self) -> String {
        let Self {
            none,
            by_stream,
            by_hint,
            compared,
            kept,
        } = self;
        let mut text = format!(
            "On the whole trace, write amplification is {none:.3} with one stream, {by_stream:.3} \
             with the streams of these rules, and {by_hint:.3} with their hints only."
        );
        match kept {
            Some(Kept { set, worse, most }) => {
                let most = if most.is_finite() {
                    format!("by {} at most", number::percent(*most))
                } else {
                    "or does not fit".to_owned()
                };
                text.push_str(&format!(
                    " The rules are those of the set {set}: the result of the search is worse than a \
                     known set in {worse} of {compared} comparisons, {most}."
                ));
            }
            None if *compared > 0 => text.push_str(&format!(
                " No known set is better on average, or by {} or more in any of {compared} comparisons.",
                number::percent(GAIN)
            )),
            None => {}
        }
        text
    }
}

/// Candidate rules for the suggestion.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) rules: Rules,
    /// The known set; `None` for the result of the search.
    pub(super) of: Option<String>,
}

/// Chooses among candidates by simulations of the whole trace.
pub(super) struct Judge<'a, 'b> {
    pub(super) trace: &'a Trace,
    pub(super) replays: &'a mut Replays<'b>,
    pub(super) conditions: &'a [Condition],
    pub(super) report: Report<'a>,
}

/// Write amplifications in the order of [`Judge::cells`].
type Cells = Vec<f64>;
/// Cells of one condition: two isolations by streams, and two by hints.
const EACH: usize = 4;

impl Judge<'_, '_> {
    /// Returns the index of the chosen candidate, and its result. That is the first candidate
    /// unless a known set is better ([`is_beaten`]); then the first of the others that no known set
    /// beats; otherwise the one of them with the least write amplification by hints, which are all
    /// that the labeller sets.
    pub(super) fn choose(
        &mut self,
        candidates: &[Candidate],
        known: &[Set],
    ) -> Result<(usize, Whole), Stop> {
        let mut step = Comparing {
            number: 0,
            count: 1 + (candidates.len() + known.len()) * EACH * self.conditions.len(),
        };
        let first = self.conditions[0];
        let none = sets::none(self.trace);
        let none = self.simulate(&none, Placement::OneStream, first, &mut step)?;
        let known = known.iter().map(|set| self.cells(set, &mut step));
        let known: Vec<Cells> = known.collect::<Result<_, _>>()?;
        let mut all: Vec<Cells> = Vec::new();
        for candidate in candidates {
            let set = Set::of_labels("candidate", candidate.rules.clone(), true);
            all.push(self.cells(&set, &mut step)?);
            if !is_beaten(&all[0], &known) {
                break;
            }
        }
        let rank = |number: &usize| {
            let [_, by_hint] = sums(&all[*number]);
            (is_beaten(&all[*number], &known), by_hint)
        };
        let number = (1..all.len()).min_by(|a, b| {
            let (a, b) = (rank(a), rank(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        let number = number.unwrap_or(0);
        let [by_stream, by_hint] = sums(&all[number][..EACH]).map(|sum| sum / 2.0);
        if !(by_stream.is_finite() && by_hint.is_finite()) {
            return Err(Stop::Impossible);
        }
        let whole = Whole {
            none,
            by_stream,
            by_hint,
            compared: known.first().map_or(0, Vec::len),
            kept: candidates[number].of.as_ref().map(|set| {
                let (worse, most) = excess(&all[0], &known);
                let set = set.clone();
                Kept { set, worse, most }
            }),
        };
        Ok((number, whole))
    }

    /// Returns write amplification for each condition: by streams, initially and persistently
    /// isolated, and by hints. Infinite if the set does not fit.
    fn cells(&mut self, set: &Set, step: &mut Comparing) -> Result<Cells, Stop> {
        let mut cells = Vec::new();
        // `compare` reports a set with too many streams.
        let joined = [By::Stream, By::Hint].map(|by| set.join(self.trace, by).ok());
        for &condition in self.conditions {
            for joined in &joined {
                for placement in [
                    Placement::InitiallyIsolated,
                    Placement::PersistentlyIsolated,
                ] {
                    let waf = joined.as_ref().map_or(Err(Stop::Impossible), |joined| {
                        self.simulate(joined, placement, condition, step)
                    });
                    cells.push(match waf {
                        Err(Stop::Impossible) => f64::INFINITY,
                        waf => waf?,
                    });
                }
            }
        }
        Ok(cells)
    }

    fn simulate(
        &mut self,
        set: &Joined,
        placement: Placement,
        condition: Condition,
        step: &mut Comparing,
    ) -> Result<f64, Stop> {
        let Self {
            replays, report, ..
        } = self;
        step.number += 1;
        let Comparing { number, count } = *step;
        let mut go_on = |_| -> ControlFlow<()> { report(Step::Comparing { number, count }) };
        match replays.case(set, placement, condition, &mut go_on) {
            Ok(case) => Ok(case.outcome.waf()),
            Err(ReplayError::Interrupted) => Err(Stop::Interrupted),
            Err(
                ReplayError::Utilisation { .. }
                | ReplayError::Full { .. }
                | ReplayError::Handles { .. }
                | ReplayError::TooLarge { .. }
                | ReplayError::Config(_),
            ) => Err(Stop::Impossible),
        }
    }
}

/// See [`Step::Comparing`].
struct Comparing {
    number: usize,
    count: usize,
}

/// Whether a known set is better: on average by streams, on average by hints, or in any cell by
/// [`GAIN`] or more.
fn is_beaten(cells: &[f64], known: &[Cells]) -> bool {
    known.iter().any(|known| {
        let means = sums(cells).into_iter().zip(sums(known));
        let mut all = cells.iter().zip(known);
        means.into_iter().any(|(own, other)| own > other)
            || all.any(|(own, other)| *own >= other * (1.0 + GAIN))
    })
}

/// Returns the sum by streams, and the sum by hints.
fn sums(cells: &[f64]) -> [f64; 2] {
    let of = |from: usize| {
        let each = cells.chunks(EACH).map(|one| one[from] + one[from + 1]);
        each.sum()
    };
    [of(0), of(2)]
}

/// Returns the number of cells in which a known set is better, and the largest difference as a
/// share.
fn excess(cells: &[f64], known: &[Cells]) -> (usize, f64) {
    let best = |cell: usize| {
        let all = known.iter().map(|known| known[cell]);
        all.fold(f64::INFINITY, f64::min)
    };
    let above = cells
        .iter()
        .enumerate()
        .map(|(cell, waf)| (waf, best(cell)));
    let above = above.filter(|(waf, best)| *waf > best);
    let most = above.clone().map(|(waf, best)| waf / best - 1.0);
    (above.count(), most.fold(0.0, f64::max))
}

/// Returns the labeller's rules of a set; `None` for a plain assignment.
pub(super) fn rules_of(set: &Set) -> Option<&Rules> {
    match &set.rules {
        Kind::Labels(rules) => Some(rules),
        Kind::Plain(_) => None,
    }
}
