//! Suggests rules from a trace: the hint and the stream of each kind of file.
//!
//! Streams are found by hill climbing: the search starts from the known sets and from groups by the
//! logarithm of the median lifetime (k-means), and moves kinds from stream to stream as long as
//! simulated write amplification falls. Hints are four such groups in the order of their lifetimes.
//! The result is compared with the known sets on the whole trace under every given condition. The
//! same trace, options and seed give the same rules.

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
use crate::format;
use crate::measure::{Conclusion, Evidence, LifetimeMeter};
use crate::replays::Replays;
use crate::sets::{self, By, Set};
use propose::Label;
pub use search::Searched;
use search::{Groups, Search, Starts, Stop};
use subjects::Subject;
pub use whole::Whole;
use whole::{Candidate, Judge};

/// The settings of a suggestion.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// At least one condition: streams are searched under the first, and no known set may be better
    /// under any.
    pub conditions: Vec<Condition>,
    /// Size of a page.
    pub page_bytes: u64,
    /// Most simulations. With fewer than three, streams are only grouped by lifetime.
    pub simulations: u32,
}

/// Suggested rules and their evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Suggestion {
    pub rules: Rules,
    /// The classes of files, the most written first.
    pub classes: Vec<Class>,
    /// The length of the trace in seconds.
    pub seen_s: f64,
    /// Lost events of the recording; `None` if unknown.
    pub lost: Option<u64>,
    /// The sampling of the trace; `None` for all pages. Bytes are extrapolated.
    pub sampled: Option<Sampling>,
    /// The search; `None` if the trace is too small for a device or too few simulations are
    /// allowed.
    pub searched: Option<Searched>,
    /// The result of the rules on the whole trace; `None` without simulations.
    pub whole: Option<Whole>,
    /// Files outside the recorded directories, which no rule can name.
    pub skipped: Vec<String>,
}

/// Files of one kind with similar lifetimes.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// The name of the file, or that of several with `N` for numbers.
    pub name: String,
    /// The places of the files.
    pub files: Vec<String>,
    pub evidence: Evidence,
    pub conclusion: Conclusion,
    /// The suggested hint; `NotSet` without a suggestion.
    pub hint: Hint,
    /// The suggested stream.
    pub stream: String,
}

/// The reason why nothing is suggested.
#[derive(Debug, thiserror::Error)]
pub enum SuggestError {
    #[error(
        "has no writes to a file that a rule could name, so there is nothing to suggest; record the \
         database's own directory"
    )]
    NoFiles,
    #[error("has only one time stamp, so lifetimes are unknown; record for longer")]
    NoTime,
    /// The simulated device is not valid.
    #[error(transparent)]
    Device(ReplayError),
    /// The report callback ended the suggestion.
    #[error("interrupted")]
    Interrupted,
}

/// The progress of a suggestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Simulations of a sample: `made` of at most `most`.
    Searching { made: u32, most: u32 },
    /// Simulation `number` of `count` on the whole trace, for the comparison with the known sets.
    Comparing { number: usize, count: usize },
}

/// Called at each step and repeatedly during it; `Break` ends the suggestion.
pub type Report<'a> = &'a mut dyn FnMut(Step) -> ControlFlow<()>;

/// Suggests rules. Simulations of the whole trace are added to `replays`.
///
/// # Errors
/// There are no files or times, the device is not valid, or `report` ended the suggestion.
///
/// # Panics
/// `options` has no condition.
pub fn suggest(
    trace: &Trace,
    replays: &mut Replays<'_>,
    options: &Options,
    report: Report<'_>,
) -> Result<Suggestion, SuggestError> {
    let footprint = replays.footprint();
    let device = replays.device(&options.conditions[0]);
    check_device(footprint, &device)?;
    let meter = LifetimeMeter::of(trace, options.page_bytes);
    let seen_s = meter.seconds();
    let places: Vec<String> = trace
        .files
        .iter()
        .map(|name| trace.place(name).to_owned())
        .collect();
    let evidence = meter.evidence();
    let (subjects, skipped) = subjects::distinguish(&places, &evidence, seen_s);
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

/// Returns the index of the best candidate, and its result; the first candidate if nothing can be
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

/// Returns groups by lifetime, for traces that cannot be simulated.
fn by_lifetime(subjects: &[Subject], most: usize) -> Groups {
    Groups {
        streams: group::by_lifetime(subjects, most),
        hints: group::by_lifetime(subjects, group::HINTS),
    }
}

/// Returns the groupings of the subjects by the known sets. Files without a rule are a group.
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

/// Returns the known sets as candidates. astream's regular expressions are replaced by globs for
/// the files of the trace, because suggestions are in TOML.
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

/// Returns the hint and the stream that rules give to each subject, by its first file.
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

/// Refuses invalid options of the device before the search. A trace that is too small for the
/// device is not an error.
fn check_device(footprint: &Footprint, device: &replay::Options) -> Result<(), SuggestError> {
    let config = replay::device(footprint, device);
    let device = config.and_then(|config| Ok(Device::new(config)?));
    match device {
        Ok(_) | Err(ReplayError::Config(ConfigError::TooSmall { .. })) => Ok(()),
        Err(error) => Err(SuggestError::Device(error)),
    }
}

/// Returns the classes of files in a trace, without streams, and the length of the trace in
/// seconds.
#[must_use]
pub fn classes(trace: &Trace, page_bytes: u64) -> (Vec<Class>, f64) {
    let meter = LifetimeMeter::of(trace, page_bytes);
    let seen_s = meter.seconds();
    let places: Vec<String> = trace
        .files
        .iter()
        .map(|name| trace.place(name).to_owned())
        .collect();
    let (subjects, _) = subjects::distinguish(&places, &meter.evidence(), seen_s);
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
        format::length(seen_s),
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
            " In {} simulations on {} pages, write amplification was {:.3} without rules and {:.3} \
             with the best streams.",
            searched.simulations, searched.pages, searched.none, searched.found
        ));
    }
    if let Some(whole) = whole {
        text.push_str(&format!(" {}", whole.summary()));
    }
    text
}

#[cfg(test)]
mod tests;
