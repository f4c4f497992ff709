//! What is suggested, beside the known sets on the whole trace: a search on a sample may end in
//! something worse.
//!
//! Write amplification is the mean of both isolations, by the streams of the rules and by their
//! hints, as `simulate` finds it.

use std::ops::ControlFlow;

use saiga_ftl::replay::{self, Footprint, Placement, ReplayError};
use saiga_ftl::trace::Trace;
use saiga_streams::rules::Rules;

use super::search::Stop;
use crate::sets::{self, By, Joined, Kind, Set};

/// What the suggested rules come to on the whole trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Whole {
    /// Write amplification of one stream.
    pub none: f64,
    /// That of the rules by their streams: the mean of both isolations.
    pub by_stream: f64,
    /// That of the rules by their hints.
    pub by_hint: f64,
    /// The known set whose files, streams and hints these are, because it was better than what the
    /// search found.
    pub kept: Option<String>,
}

impl Whole {
    /// The figures, and whose rules these are, in a sentence or two.
    #[must_use]
    pub fn words(&self) -> String {
        let Self {
            none,
            by_stream,
            by_hint,
            kept,
        } = self;
        let mut text = format!(
            "On the whole trace, write amplification is {none:.3} with one stream, {by_stream:.3} with the streams of these \
             rules, and {by_hint:.3} with their hints alone."
        );
        if let Some(set) = kept {
            text.push_str(&format!(
                " The rules are those of the set {set}: the search found nothing better."
            ));
        }
        text
    }
}

/// Rules that may be suggested.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) rules: Rules,
    /// The known set that they are.
    pub(super) of: Option<String>,
}

/// Simulations of the whole trace.
pub(super) struct Judge<'a> {
    pub(super) trace: &'a Trace,
    pub(super) footprint: &'a Footprint,
    pub(super) device: &'a replay::Options,
    pub(super) go_on: &'a mut dyn FnMut() -> ControlFlow<()>,
}

/// By streams, and by hints.
type Both = [f64; 2];

impl Judge<'_> {
    /// The first candidate that is worse than no known set by streams and by hints; else the one
    /// with the least write amplification by hints, which are all that the labeller sets. The
    /// number of the candidate, and what it comes to.
    pub(super) fn choose(
        &mut self,
        candidates: &[Candidate],
        known: &[Set],
    ) -> Result<(usize, Whole), Stop> {
        let none = self.simulate(&sets::none(self.trace), Placement::OneStream)?;
        let mut limit: Both = [f64::INFINITY; 2];
        for set in known {
            let found = self.both(set)?;
            limit = [limit[0].min(found[0]), limit[1].min(found[1])];
        }
        let mut best: Option<(usize, Both)> = None;
        for (number, candidate) in candidates.iter().enumerate() {
            let set = Set::of_labels("candidate", candidate.rules.clone(), true);
            let found = self.both(&set)?;
            let is_good = found[0] <= limit[0] && found[1] <= limit[1];
            if is_good || best.is_none_or(|(_, known)| found[1] < known[1]) {
                best = Some((number, found));
            }
            if is_good {
                break;
            }
        }
        let is_found = |(_, found): &(usize, Both)| found.iter().all(|waf| waf.is_finite());
        let (number, [by_stream, by_hint]) = best.filter(is_found).ok_or(Stop::Impossible)?;
        let kept = candidates
            .get(number)
            .and_then(|candidate| candidate.of.clone());
        let whole = Whole {
            none,
            by_stream,
            by_hint,
            kept,
        };
        Ok((number, whole))
    }

    fn both(&mut self, set: &Set) -> Result<Both, Stop> {
        let mut both = [f64::INFINITY; 2];
        for (found, by) in both.iter_mut().zip([By::Stream, By::Hint]) {
            // A set with more streams than can be told apart is refused where it is asked for.
            let Ok(joined) = set.join(self.trace, by) else {
                continue;
            };
            let mut isolations = [f64::INFINITY; 2];
            let placements = [
                Placement::InitiallyIsolated,
                Placement::PersistentlyIsolated,
            ];
            for (waf, placement) in isolations.iter_mut().zip(placements) {
                match self.simulate(&joined, placement) {
                    Err(Stop::Impossible) => {}
                    simulated => *waf = simulated?,
                }
            }
            *found = f64::midpoint(isolations[0], isolations[1]);
        }
        Ok(both)
    }

    fn simulate(&mut self, set: &Joined, placement: Placement) -> Result<f64, Stop> {
        let go_on = &mut self.go_on;
        let case = replay::replay(self.footprint, set, placement, self.device, &mut |_| {
            go_on()
        });
        match case {
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

/// The rules of a set, if it has the labeller's.
pub(super) fn rules_of(set: &Set) -> Option<&Rules> {
    match &set.rules {
        Kind::Labels(rules) => Some(rules),
        Kind::Plain(_) => None,
    }
}
