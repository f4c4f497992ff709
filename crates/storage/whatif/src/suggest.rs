//! Rules from a trace: what each kind of file is, which hint suits it, and which kinds should share a stream.
//!
//! Streams are found by trying: the search begins with the known sets and with kinds put together
//! by the logarithm of their median lifetime (k-means), and moves kinds from stream to stream as
//! long as simulated write amplification falls. Hints are four such groups in the order of their
//! lifetimes. What the search finds is compared with the known sets on the whole trace, under every
//! condition that is asked for. The same trace, options and seed give the same rules.

mod glob;
mod group;
mod propose;
mod search;
mod subjects;
mod whole;

use saiga_document::number;
use std::ops::ControlFlow;
use std::path::Path;

use saiga_ftl::replay::{self, Footprint, MAX_STREAMS, ReplayError};
use saiga_ftl::trace::{Sampling, Trace};
use saiga_ftl::{ConfigError, Device};
use saiga_streams::Hint;
use saiga_streams::rules::{FilePaths, Rules};

use crate::compare::Condition;
use crate::measure::{Conclusion, Evidence, Watcher};
use crate::replays::Replays;
use crate::sets::{self, By, Set};
use crate::words;
use propose::Label;
pub use search::Searched;
use search::{Groups, Search, Starts, Stop};
use subjects::Subject;
pub use whole::Whole;
use whole::{Candidate, Judge};

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// What the device may be like, one at least: streams are looked for under the first, and no
    /// known set may be better under any.
    pub conditions: Vec<Condition>,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Simulations that may be made; streams are by lifetime only where these are less than three.
    pub simulations: u32,
}

/// Rules, and what they rest on.
#[derive(Debug, Clone, PartialEq)]
pub struct Suggestion {
    /// The rules; the first that matches decides.
    pub rules: Rules,
    /// What was told apart, the most written first.
    pub classes: Vec<Class>,
    /// How long the trace is, in seconds.
    pub seen_s: f64,
    /// Events that are missing in it; `None` where it does not tell.
    pub lost: Option<u64>,
    /// Which part of the pages it has; `None` for all. Bytes are those that it stands for.
    pub sampled: Option<Sampling>,
    /// What the search found; `None` when the trace is too small for a device, or too few simulations may be made.
    pub searched: Option<Searched>,
    /// What the rules come to on the whole trace; `None` when nothing was simulated.
    pub whole: Option<Whole>,
    /// Files that no rule can name: they are outside the recorded directories.
    pub skipped: Vec<String>,
}

/// Files that are of one kind and live alike.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// The name of the file, or that of many with `N` for digits.
    pub name: String,
    /// The files' places.
    pub files: Vec<String>,
    /// What was seen of them.
    pub evidence: Evidence,
    /// What they are.
    pub conclusion: Conclusion,
    /// The hint that it is to have; not set where nothing is suggested.
    pub hint: Hint,
    /// The stream that they are to share with others.
    pub stream: String,
}

/// Why nothing is suggested.
#[derive(Debug, thiserror::Error)]
pub enum SuggestError {
    /// There is no file that a rule could name.
    #[error(
        "writes to no file that a rule could name, so there is nothing to suggest; record the database's own directory"
    )]
    NoFiles,
    /// Nothing can be said about lifetimes.
    #[error(
        "all of it has one and the same time, so nothing is known of lifetimes; record for longer"
    )]
    NoTime,
    /// The device that it is to be simulated on cannot be.
    #[error(transparent)]
    Device(ReplayError),
    /// `report` ended it.
    #[error("interrupted")]
    Interrupted,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Simulations of a sample that were made, and how many may be.
    Searching {
        /// So many.
        made: u32,
        /// At most.
        most: u32,
    },
    /// Simulations of the whole trace by which what was found is compared with the known sets.
    Comparing {
        /// The number of this one.
        number: usize,
        /// How many there will be.
        count: usize,
    },
}

/// Told each step, and again and again during one; may end it.
pub type Report<'a> = &'a mut dyn FnMut(Step) -> ControlFlow<()>;

/// Suggests rules; what is simulated of the whole trace is added to `replays`.
///
/// # Errors
/// There is nothing to suggest rules for, the device is none, or `report` ended it.
///
/// # Panics
/// Without a condition.
pub fn suggest(
    trace: &Trace,
    replays: &mut Replays<'_>,
    options: &Options,
    report: Report<'_>,
) -> Result<Suggestion, SuggestError> {
    let footprint = replays.footprint();
    let device = replays.device(&options.conditions[0]);
    check_device(footprint, &device)?;
    let watcher = Watcher::of(trace, options.page_bytes);
    let seen_s = watcher.seconds();
    let places: Vec<String> = trace
        .files
        .iter()
        .map(|name| trace.place(name).to_owned())
        .collect();
    let evidence = watcher.evidence();
    let (subjects, skipped) = subjects::tell_apart(&places, &evidence, seen_s);
    if subjects.is_empty() {
        return Err(SuggestError::NoFiles);
    }
    if seen_s <= 0.0 {
        return Err(SuggestError::NoTime);
    }
    let has_rest = !skipped.is_empty() || has_nameless_writes(trace);
    let most = device
        .handles
        .saturating_sub(usize::from(has_rest))
        .clamp(1, MAX_STREAMS - 1);
    let known = sets::known_for(trace);
    let starts = Starts {
        streams: starts(&known, trace, &subjects, By::Stream),
        hints: starts(&known, trace, &subjects, By::Hint),
    };
    let limit = options.simulations;
    let mut search = Search::new(trace, footprint, &subjects, &device, limit, &mut *report);
    let (groups, searched) = match search.find(most, &starts) {
        Ok((groups, searched)) => (groups, Some(searched)),
        Err(Stop::Impossible) => (by_lifetime(&subjects, most), None),
        Err(Stop::Interrupted) => return Err(SuggestError::Interrupted),
    };
    let streams = propose::stream_names(&subjects, &groups.streams, &places);
    let hints = group::hints(&subjects, &groups.hints);
    let mut labels: Vec<Label> = hints.into_iter().zip(streams).collect();
    let mut rules = propose::rules(&subjects, &labels, &places, seen_s);
    let mut whole = None;
    if searched.is_some() {
        let judge = Judge {
            trace,
            replays,
            conditions: &options.conditions,
            report,
        };
        let mut candidates = vec![Candidate { rules, of: None }];
        candidates.extend(fallbacks(&known, trace, &subjects, &places, seen_s));
        let (number, chosen) = chosen(judge, &candidates, &known)?;
        rules = candidates.swap_remove(number).rules;
        if number > 0 {
            labels = labels_of(&rules, trace, &subjects);
        }
        whole = chosen;
    }
    rules.about = Some(about(trace, seen_s, searched.as_ref(), whole.as_ref()));
    let classes = subjects.into_iter().zip(labels);
    Ok(Suggestion {
        rules,
        classes: classes
            .map(|(subject, label)| class(subject, label, &places))
            .collect(),
        seen_s,
        lost: trace.recorded.map(|recorded| recorded.lost),
        sampled: trace.sampled,
        searched,
        whole,
        skipped,
    })
}

/// The number of the best candidate, and what it comes to; the first where nothing can be
/// simulated.
fn chosen(
    mut judge: Judge<'_, '_>,
    candidates: &[Candidate],
    known: &[Set],
) -> Result<(usize, Option<Whole>), SuggestError> {
    match judge.choose(candidates, known) {
        Ok((number, whole)) => Ok((number, Some(whole))),
        Err(Stop::Impossible) => Ok((0, None)),
        Err(Stop::Interrupted) => Err(SuggestError::Interrupted),
    }
}

/// Groupings by lifetime only, where nothing can be simulated.
fn by_lifetime(subjects: &[Subject], most: usize) -> Groups {
    Groups {
        streams: group::by_lifetime(subjects, most),
        hints: group::by_lifetime(subjects, group::HINTS),
    }
}

/// What the known sets make of the subjects. Files that nothing matches are a group of their own.
fn starts(known: &[Set], trace: &Trace, subjects: &[Subject], by: By) -> Vec<Vec<usize>> {
    let joined = known.iter().filter_map(|set| set.join(trace, by).ok());
    let groups = joined.map(|joined| {
        let stream = |subject: &Subject| {
            let file = subject
                .files
                .first()
                .map(|file| trace.files[*file].as_str());
            replay::Rules::stream_of(&joined, file)
        };
        subjects.iter().map(stream).collect()
    });
    groups.collect()
}

/// The known sets as rules that can be written down: astream's regular expressions become globs for
/// the files of the trace.
fn fallbacks(
    known: &[Set],
    trace: &Trace,
    subjects: &[Subject],
    places: &[String],
    seen_s: f64,
) -> Vec<Candidate> {
    let candidate = |set: &Set| {
        let rules = whole::rules_of(set)?;
        let is_glob = rules.rules.iter().all(|rule| !rule.pattern.is_search());
        let rules = if is_glob {
            rules.clone()
        } else {
            let labels = labels_of(rules, trace, subjects);
            propose::rules(subjects, &labels, places, seen_s)
        };
        let of = Some(set.name.clone());
        (!rules.rules.is_empty()).then_some(Candidate { rules, of })
    };
    known.iter().filter_map(candidate).collect()
}

/// What rules give to each subject, by its first file.
fn labels_of(rules: &Rules, trace: &Trace, subjects: &[Subject]) -> Vec<Label> {
    let label = |subject: &Subject| {
        let file = subject
            .files
            .first()
            .map(|file| trace.files[*file].as_str());
        let rule = file.and_then(|name| {
            rules.find(&FilePaths {
                relative: Path::new(trace.place(name)),
                absolute: Path::new(name),
            })
        });
        rule.map_or((Hint::NotSet, "default".to_owned()), |(_, rule)| {
            let stream = rule.stream.clone();
            (rule.hint, stream.unwrap_or_else(|| rule.hint.to_string()))
        })
    };
    subjects.iter().map(label).collect()
}

/// A share or a number of handles that is none is said before the work; for a small trace, streams are by lifetime.
fn check_device(footprint: &Footprint, device: &replay::Options) -> Result<(), SuggestError> {
    let config = replay::device(footprint, device);
    let device = config.and_then(|config| Ok(Device::new(config)?));
    match device {
        Ok(_) | Err(ReplayError::Config(ConfigError::TooSmall { .. })) => Ok(()),
        Err(error) => Err(SuggestError::Device(error)),
    }
}

/// What is told apart in a trace, without streams, and how long it is in seconds.
#[must_use]
pub fn classes(trace: &Trace, page_bytes: u64) -> (Vec<Class>, f64) {
    let watcher = Watcher::of(trace, page_bytes);
    let seen_s = watcher.seconds();
    let places: Vec<String> = trace
        .files
        .iter()
        .map(|name| trace.place(name).to_owned())
        .collect();
    let (subjects, _) = subjects::tell_apart(&places, &watcher.evidence(), seen_s);
    let class = |subject| class(subject, (Hint::NotSet, String::new()), &places);
    (subjects.into_iter().map(class).collect(), seen_s)
}

fn has_nameless_writes(trace: &Trace) -> bool {
    let is_write = |row: &saiga_ftl::trace::Row| row.op == saiga_ftl::trace::Op::Write;
    trace
        .rows
        .iter()
        .filter(is_write)
        .any(|row| row.file.is_none())
}

fn class(subject: Subject, (hint, stream): Label, places: &[String]) -> Class {
    let Subject {
        name,
        files,
        evidence,
        conclusion,
    } = subject;
    Class {
        name,
        files: files.iter().map(|file| places[*file].clone()).collect(),
        evidence,
        conclusion,
        hint,
        stream,
    }
}

fn about(trace: &Trace, seen_s: f64, searched: Option<&Searched>, whole: Option<&Whole>) -> String {
    let written: u64 = trace
        .rows
        .iter()
        .filter(|row| row.op == saiga_ftl::trace::Op::Write)
        .map(|row| row.len)
        .sum();
    let written = trace.stand_for(written);
    let mut text = format!(
        "Suggested by saiga streams suggest from a trace of {}, {} written in {} files.",
        words::length(seen_s),
        number::bytes(written),
        trace.files.len()
    );
    if let Some(sampling) = trace.sampled {
        let one_in = sampling.one_in();
        text.push_str(&format!(
            " The trace was sampled 1/{one_in}; bytes are estimated from it."
        ));
    }
    if trace.lost() > 0 {
        let lost = trace.lost();
        text.push_str(&format!(" The trace has holes: {lost} events were lost."));
    }
    if let Some(searched) = searched {
        text.push_str(&format!(
            " In {} simulations on {} pages, write amplification was {:.3} without rules and {:.3} with the best streams.",
            searched.simulations, searched.pages, searched.none, searched.found
        ));
    }
    if let Some(whole) = whole {
        text.push_str(&format!(" {}", whole.words()));
    }
    text
}

#[cfg(test)]
mod tests;
