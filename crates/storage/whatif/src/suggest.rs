//! Rules from a trace: what each kind of file is, which hint suits it, and which kinds should share a stream.
//!
//! Hints follow from how long pages live ([`measure`](crate::measure)). Streams are found by trying: kinds are put together
//! by the logarithm of their median lifetime (k-means), and then moved from stream to stream as long as simulated write
//! amplification falls. The same trace, options and seed give the same rules.

mod glob;
mod group;
mod propose;
mod search;
mod subjects;

use std::ops::ControlFlow;

use saiga_ftl::replay::{self, Footprint, MAX_STREAMS, ReplayError};
use saiga_ftl::trace::Trace;
use saiga_ftl::{ConfigError, Device};
use saiga_streams::rules::Rules;

use crate::measure::{Conclusion, Evidence, Watcher};
use crate::words;
pub use search::Searched;
use search::{Search, Stop};
use subjects::Subject;

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The device; its handles are the streams that there may be.
    pub device: replay::Options,
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
    /// What the search found; `None` when the trace is too small for a device, or too few simulations may be made.
    pub searched: Option<Searched>,
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

/// Told the simulations that are made, and how many may be; may end the search.
pub type Report<'a> = &'a mut dyn FnMut(u32, u32) -> ControlFlow<()>;

/// Suggests rules.
///
/// # Errors
/// There is nothing to suggest rules for, the device is none, or `report` ended it.
pub fn suggest(
    trace: &Trace,
    footprint: &Footprint,
    options: &Options,
    report: Report<'_>,
) -> Result<Suggestion, SuggestError> {
    check_device(footprint, &options.device)?;
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
    let most = options
        .device
        .handles
        .saturating_sub(usize::from(has_rest))
        .clamp(1, MAX_STREAMS - 1);
    let mut search = Search::new(trace, footprint, &subjects, options, report);
    let (groups, searched) = match search.find(most) {
        Ok((groups, searched)) => (groups, Some(searched)),
        Err(Stop::Impossible) => (group::by_lifetime(&subjects, most), None),
        Err(Stop::Interrupted) => return Err(SuggestError::Interrupted),
    };
    let streams = propose::stream_names(&subjects, &groups, &places);
    let mut rules = propose::rules(&subjects, &streams, &places, seen_s);
    rules.about = Some(about(trace, seen_s, searched.as_ref()));
    let classes = subjects.into_iter().zip(streams);
    Ok(Suggestion {
        rules,
        classes: classes
            .map(|(subject, stream)| class(subject, stream, &places))
            .collect(),
        seen_s,
        lost: trace.recorded.map(|recorded| recorded.lost),
        searched,
        skipped,
    })
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
    let class = |subject| class(subject, String::new(), &places);
    (subjects.into_iter().map(class).collect(), seen_s)
}

fn has_nameless_writes(trace: &Trace) -> bool {
    let is_write = |row: &&saiga_ftl::trace::Row| row.op == saiga_ftl::trace::Op::Write;
    trace
        .rows
        .iter()
        .filter(is_write)
        .any(|row| row.file.is_none())
}

fn class(subject: Subject, stream: String, places: &[String]) -> Class {
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
        stream,
    }
}

fn about(trace: &Trace, seen_s: f64, searched: Option<&Searched>) -> String {
    let written: u64 = trace
        .rows
        .iter()
        .filter(|row| row.op == saiga_ftl::trace::Op::Write)
        .map(|row| row.len)
        .sum();
    let mut text = format!(
        "Suggested by saiga streams suggest from a trace of {}, {} written in {} files.",
        words::length(seen_s),
        words::bytes(written),
        trace.files.len()
    );
    if trace.lost() > 0 {
        let lost = trace.lost();
        text.push_str(&format!(" The trace has holes: {lost} events were lost."));
    }
    if let Some(searched) = searched {
        text.push_str(&format!(
            " In {} simulations on {} pages, write amplification was {:.3} without rules and {:.3} with these.",
            searched.simulations, searched.pages, searched.none, searched.found
        ));
    }
    text
}

#[cfg(test)]
mod tests;
