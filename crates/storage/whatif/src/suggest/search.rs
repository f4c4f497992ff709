//! Searches streams by hill climbing: moves kinds of files from stream to stream as long as
//! simulated write amplification falls.
//!
//! Each trial replays a sample of the trace's pages on a small device, initially and persistently
//! isolated, for a shorter time than a comparison. Trials only rank groupings; the result is
//! compared on the whole trace.

use std::collections::HashMap;

use saiga_ftl::replay::{self, Footprint, Placement, ReplayError};
use saiga_ftl::steady::Length;
use saiga_ftl::trace::Trace;

use super::group::HINTS;
use super::subjects::Subject;
use super::{Report, Step, group};

/// Most and fewest pages of the sample, and the page writes that one repetition of it should have.
const MOST_PAGES: f64 = 65_536.0;
const LEAST_PAGES: f64 = 16_384.0;
const WRITES: f64 = 1_000_000.0;
const LENGTH: Length = Length {
    warm_up: 4,
    measured: 2,
};
/// A move must lower write amplification by this share; less is not significant (docs/ftl.md).
pub(super) const GAIN: f64 = 0.005;
/// Two streams are joined if that raises write amplification by less than this share.
const LOSS: f64 = 0.001;
/// Subjects with less than this share of all written bytes are not moved.
const MOVED_SHARE: f64 = 0.005;
/// Simulations for each grouping: one for each isolation.
const TRIAL: u32 = 2;
/// The share of the simulations for hints, as a fraction.
const HINT_SHARE: (u32, u32) = (2, 5);

/// The result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Searched {
    /// Number of simulations.
    pub simulations: u32,
    pub pages: u32,
    /// Write amplification of one stream.
    pub none: f64,
    /// Write amplification of the best start, a known set or a grouping by lifetime: the mean of
    /// both isolations.
    pub start: f64,
    /// Write amplification of the best grouping: the mean of both isolations.
    pub found: f64,
}

/// Start groupings from the known sets, in addition to those by lifetime.
#[derive(Debug, Default)]
pub(super) struct Starts {
    /// By the streams of their rules.
    pub(super) streams: Vec<Vec<usize>>,
    /// By the hints of their rules.
    pub(super) hints: Vec<Vec<usize>>,
}

/// The best groupings.
#[derive(Debug)]
pub(super) struct Groups {
    pub(super) streams: Vec<usize>,
    pub(super) hints: Vec<usize>,
}

/// The reason for no result.
#[derive(Debug)]
pub(super) enum Stop {
    /// The report callback ended the search.
    Interrupted,
    /// The sample fits on no device, or too few simulations are allowed.
    Impossible,
}

/// The state of a search.
pub(super) struct Search<'a> {
    sample: Footprint,
    subjects: &'a [Subject],
    /// The subject of each file by name.
    subject_of: HashMap<&'a str, usize>,
    device: replay::Options,
    most: u32,
    /// Allowed simulations in this part of the search.
    limit: u32,
    made: u32,
    /// Write amplification of the tried groupings, in canonical form.
    known: HashMap<Vec<usize>, f64>,
    rng: fastrand::Rng,
    report: Report<'a>,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        trace: &'a Trace,
        footprint: &Footprint,
        subjects: &'a [Subject],
        device: &replay::Options,
        simulations: u32,
        report: Report<'a>,
    ) -> Self {
        let mut subject_of = HashMap::new();
        for (number, subject) in subjects.iter().enumerate() {
            for file in &subject.files {
                subject_of.insert(trace.files[*file].as_str(), number);
            }
        }
        let sample = footprint.sampled(sample_pages(footprint));
        Self {
            sample,
            subjects,
            subject_of,
            device: replay::Options {
                unit_pages: None,
                length: LENGTH,
                ..device.clone()
            },
            most: simulations,
            limit: simulations,
            made: 0,
            known: HashMap::new(),
            rng: fastrand::Rng::with_seed(device.seed),
            report,
        }
    }

    /// Finds the best grouping into at most `most` streams, and the best into hints.
    pub(super) fn find(
        &mut self,
        most: usize,
        starts: &Starts,
    ) -> Result<(Groups, Searched), Stop> {
        if self.most < 1 + TRIAL {
            return Err(Stop::Impossible);
        }
        let none = self.simulate(&vec![0; self.subjects.len()], Placement::OneStream)?;
        self.limit = (self.most - self.most * HINT_SHARE.0 / HINT_SHARE.1).max(1 + TRIAL);
        let (mut streams, start) = self
            .best_start(&starts.streams, most)?
            .ok_or(Stop::Impossible)?;
        let mut found = self.climb(&mut streams, start, most)?;
        self.simplify(&mut streams, &mut found)?;
        self.limit = self.most;
        let hints = self.hints(&streams, starts)?;
        let searched = Searched {
            simulations: self.made,
            pages: self.sample.pages(),
            none,
            start,
            found,
        };
        let streams = canonical(&streams);
        Ok((Groups { streams, hints }, searched))
    }

    /// Finds the best grouping into hints. Starts from the streams, with neighbours by lifetime
    /// joined, and from the hints of the known sets.
    fn hints(&mut self, streams: &[usize], starts: &Starts) -> Result<Vec<usize>, Stop> {
        let joined = group::folded(self.subjects, streams, HINTS);
        let starts: Vec<Vec<usize>> = [joined.clone()]
            .into_iter()
            .chain(starts.hints.iter().cloned())
            .collect();
        let Some((mut hints, waf)) = self.best_start(&starts, HINTS)? else {
            return Ok(canonical(&joined));
        };
        self.climb(&mut hints, waf, HINTS)?;
        Ok(canonical(&hints))
    }

    /// Returns the best of `starts` and of the groupings by lifetime into at most `most`. `None` if
    /// none fits or no simulation is allowed.
    fn best_start(
        &mut self,
        starts: &[Vec<usize>],
        most: usize,
    ) -> Result<Option<(Vec<usize>, f64)>, Stop> {
        let known = starts
            .iter()
            .map(|groups| group::folded(self.subjects, groups, most));
        let by_lifetime = (1..=most)
            .rev()
            .map(|count| group::by_lifetime(self.subjects, count));
        let all: Vec<Vec<usize>> = known.chain(by_lifetime).collect();
        let mut best: Option<(Vec<usize>, f64)> = None;
        for groups in all {
            let is_known = self.known.contains_key(&canonical(&groups));
            if !is_known && !self.may_try() {
                continue;
            }
            let waf = self.waf(&groups)?;
            let is_better = |(_, known): &(_, f64)| waf < known * (1.0 - GAIN);
            if waf.is_finite() && best.as_ref().is_none_or(is_better) {
                best = Some((canonical(&groups), waf));
            }
        }
        Ok(best)
    }

    /// Whether another grouping may be simulated.
    fn may_try(&self) -> bool {
        self.made + TRIAL <= self.limit
    }

    /// Moves one subject at a time, in random order, until no move helps.
    fn climb(&mut self, groups: &mut [usize], mut waf: f64, most: usize) -> Result<f64, Stop> {
        let all: u64 = self
            .subjects
            .iter()
            .map(|one| one.evidence.written_bytes)
            .sum();
        let is_moved = |subject: &&usize| {
            self.subjects[**subject].evidence.written_bytes as f64 >= MOVED_SHARE * all as f64
        };
        let numbers: Vec<usize> = (0..groups.len()).collect();
        let moved: Vec<usize> = numbers.iter().filter(is_moved).copied().collect();
        let mut moves: Vec<(usize, usize)> = moved
            .iter()
            .flat_map(|subject| (0..most).map(|group| (*subject, group)))
            .collect();
        let mut is_better = true;
        while is_better && self.may_try() {
            is_better = false;
            self.rng.shuffle(&mut moves);
            for &(subject, group) in &moves {
                let before = std::mem::replace(&mut groups[subject], group);
                if before == group {
                    continue;
                }
                if !self.may_try() {
                    groups[subject] = before;
                    break;
                }
                let next = self.waf(groups)?;
                if next < waf * (1.0 - GAIN) {
                    waf = next;
                    is_better = true;
                } else {
                    groups[subject] = before;
                }
            }
        }
        Ok(waf)
    }

    /// Joins streams without a gain from separation.
    fn simplify(&mut self, groups: &mut Vec<usize>, waf: &mut f64) -> Result<(), Stop> {
        // Each result is compared with the best, so that small losses do not add up.
        let limit = *waf * (1.0 + LOSS);
        loop {
            let count = canonical(groups).iter().max().map_or(0, |last| last + 1);
            let pairs = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b)));
            let mut joined = None;
            for (a, b) in pairs {
                let trial: Vec<usize> = canonical(groups)
                    .iter()
                    .map(|group| if *group == b { a } else { *group })
                    .collect();
                let is_known = self.known.contains_key(&canonical(&trial));
                if !is_known && !self.may_try() {
                    continue;
                }
                let next = self.waf(&trial)?;
                if next <= limit {
                    joined = Some((trial, next));
                    break;
                }
            }
            let Some((trial, next)) = joined else {
                return Ok(());
            };
            (*groups, *waf) = (trial, next);
        }
    }

    /// Returns the write amplification of a grouping: the mean of both isolations; infinite if the
    /// streams do not fit on the small device.
    fn waf(&mut self, groups: &[usize]) -> Result<f64, Stop> {
        let key = canonical(groups);
        if let Some(waf) = self.known.get(&key) {
            return Ok(*waf);
        }
        let mut both = [f64::INFINITY; 2];
        let isolations = [
            Placement::InitiallyIsolated,
            Placement::PersistentlyIsolated,
        ];
        for (waf, isolation) in both.iter_mut().zip(isolations) {
            match self.simulate(&key, isolation) {
                Err(Stop::Impossible) => {}
                found => *waf = found?,
            }
        }
        let waf = f64::midpoint(both[0], both[1]);
        self.known.insert(key, waf);
        Ok(waf)
    }

    fn simulate(&mut self, groups: &[usize], placement: Placement) -> Result<f64, Stop> {
        let subject_of = &self.subject_of;
        let stream_of = |file: Option<&str>| {
            let subject = file.and_then(|file| subject_of.get(file));
            subject.map_or(0, |subject| groups[*subject] + 1)
        };
        let case = replay::replay(
            &self.sample,
            &stream_of,
            placement,
            &self.device,
            &mut replay::silent,
        );
        self.made += 1;
        let step = Step::Searching {
            made: self.made,
            most: self.most,
        };
        if (self.report)(step).is_break() {
            return Err(Stop::Interrupted);
        }
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

/// Returns the number of pages of a sample that keeps a trial short.
fn sample_pages(footprint: &Footprint) -> u32 {
    let pages = f64::from(footprint.pages());
    let writes = footprint.totals().written_pages as f64;
    let wanted = (pages * WRITES / writes.max(1.0)).clamp(LEAST_PAGES, MOST_PAGES);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped above"
    )]
    let wanted = wanted as u32;
    wanted
}

/// Renumbers groups in the order of their first appearance.
fn canonical(groups: &[usize]) -> Vec<usize> {
    let mut seen: Vec<usize> = Vec::new();
    let number = |group: &usize| {
        seen.iter()
            .position(|known| known == group)
            .unwrap_or_else(|| {
                seen.push(*group);
                seen.len() - 1
            })
    };
    groups.iter().map(number).collect()
}
