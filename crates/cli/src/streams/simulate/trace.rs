//! A recorded trace with one stream and with every rule set, initially and persistently isolated.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context as _, bail};
use saiga_document::html;
use saiga_ftl::replay::{self, Footprint, Options, Placement, ReplayError};
use saiga_ftl::trace::Trace;
use saiga_ftl::{ConfigError, Device};
use saiga_process::interrupt::Interrupt;
use saiga_whatif::compare::{Ranges, Variant, Watch, compare, placement_name};
use saiga_whatif::directories::Directories;
use saiga_whatif::document::{Content, condition_words, document};
use saiga_whatif::suggest::{Class, SuggestError};
use saiga_whatif::without::LeftOut;
use saiga_whatif::{Condition, Joined, Replays, Run, Set, Suggestion, sets, suggest};
use serde_json::{Value, json};

use super::super::{suggested, trace_file};
use super::{Args, format, json as values, outcome};
use crate::{exit, outfile};

/// Name of the set that is found from the trace.
const SUGGESTED: &str = "suggested";
/// Default share of the device that holds data.
const UTILISATION: f64 = 0.9;

/// A value of `--rules`.
enum SetChoice {
    /// The single stream, which is always simulated.
    None,
    Suggested,
    Set(Set),
}

/// The inputs and results of all simulations.
pub(super) struct TraceResults<'a> {
    pub(super) path: &'a Path,
    pub(super) trace: &'a Trace,
    pub(super) footprint: &'a Footprint,
    pub(super) page_bytes: u64,
    /// The options that all devices share.
    pub(super) device: &'a Options,
    pub(super) conditions: &'a [Condition],
    pub(super) sets: &'a [Joined],
    pub(super) runs: &'a [Run],
    pub(super) suggestion: Option<&'a Suggestion>,
    pub(super) left_out: Option<&'a LeftOut>,
    pub(super) directories: Option<&'a Directories>,
}

/// Returns text and JSON, and writes the report.
pub(super) fn simulate(path: &Path, args: &Args) -> anyhow::Result<(String, Value)> {
    if let Some(report) = &args.report {
        outfile::check(report)?;
    }
    let wanted: anyhow::Result<Vec<_>> = args.rules.iter().map(|word| read_set(word)).collect();
    let mut wanted = wanted?;
    let trace = trace_file::read(path)?;
    if let Some(holes) = suggested::holes(&trace) {
        exit::say(&format!("warning: {holes}"));
    }
    let footprint = Footprint::of(&trace, args.replay.page_bytes)
        .with_context(|| path.display().to_string())?;
    let conditions = ranges(args).conditions(footprint.totals().discards > 0);
    let device = args.device.options(args.replay.handles);
    // An impossible device is reported before the work.
    for condition in &conditions {
        Device::new(replay::device(&footprint, &condition.device(&device))?)?;
    }
    let interrupt = Interrupt::on_signals().context("cannot watch for Ctrl-C")?;
    let is_asked = !wanted.is_empty();
    if !is_asked {
        wanted = by_default(&trace);
    }
    let left_out = left_out(&wanted, &trace, args)?;
    let rest = left_out.as_ref().map(|out| {
        let rest = footprint.without(&trace, args.replay.page_bytes, &|file| out.has(file));
        rest.with_context(|| format!("without {}, the trace", out.name))
    });
    let rest = rest.transpose()?;
    // Errors in the given sets are reported before the search for a suggested one.
    let given = given(wanted, &trace, args)?;
    let mut variants = vec![Variant {
        without: None,
        replays: Replays::new(&footprint, &device),
    }];
    let suggestion = if given.iter().any(Option::is_none) {
        let replays = &mut variants[0].replays;
        suggestion(&trace, replays, &conditions, args, is_asked, &interrupt)
            .with_context(|| path.display().to_string())?
    } else {
        None
    };
    variants.extend(rest.as_ref().map(|rest| Variant {
        without: left_out.as_ref().map(|out| out.name.as_str().into()),
        replays: Replays::new(rest, &device),
    }));
    let mut joined = with_suggested(given, suggestion.as_ref(), &trace, args)?;
    let runs = runs(
        &mut variants,
        &trace,
        &mut joined,
        &conditions,
        is_asked,
        &interrupt,
    )?;
    let directories = Directories::of(&trace);
    let found = TraceResults {
        path,
        trace: &trace,
        footprint: &footprint,
        page_bytes: args.replay.page_bytes,
        device: &device,
        conditions: &conditions,
        sets: &joined,
        runs: &runs,
        suggestion: suggestion.as_ref(),
        left_out: left_out.as_ref(),
        directories: directories.as_ref(),
    };
    if let Some(report) = &args.report {
        outfile::write(report, &page(&found)?)?;
    }
    Ok((format::text(&found)?, values::json(&found, &args.by())?))
}

/// Rules from the trace; `None` if none can be suggested and none were requested.
fn suggestion(
    trace: &Trace,
    replays: &mut Replays<'_>,
    conditions: &[Condition],
    args: &Args,
    is_asked: bool,
    interrupt: &Interrupt,
) -> Result<Option<Suggestion>, SuggestError> {
    let options = suggest::Options {
        conditions: conditions.to_vec(),
        page_bytes: args.replay.page_bytes,
        simulations: args.replay.simulations,
    };
    match suggested::suggest(trace, replays, &options, &|| interrupt.raised()) {
        Err(SuggestError::NoFiles | SuggestError::NoTime) if !is_asked => Ok(None),
        found => found.map(Some),
    }
}

/// Runs all simulations; only one stream if sets that were not requested do not fit the device.
fn runs(
    variants: &mut [Variant<'_>],
    trace: &Trace,
    joined: &mut Vec<Joined>,
    conditions: &[Condition],
    is_asked: bool,
    interrupt: &Interrupt,
) -> anyhow::Result<Vec<Run>> {
    let none = sets::none(trace);
    let watch = &mut Progress { interrupt };
    let runs = match compare(variants, &none, joined, conditions, watch) {
        Err(error) if !is_asked && is_too_small(&error) => {
            exit::say(&format!(
                "note: only one stream is simulated, because the rest does not fit: {error}"
            ));
            joined.clear();
            compare(variants, &none, &[], conditions, watch)
        }
        runs => runs,
    }?;
    Ok(runs)
}

/// The files to leave out, by the streams of the given sets and of the set of the trace's database.
fn left_out(wanted: &[SetChoice], trace: &Trace, args: &Args) -> anyhow::Result<Option<LeftOut>> {
    if args.without.is_empty() {
        return Ok(None);
    }
    let own = sets::database_of(trace).and_then(|name| Set::load(name).ok());
    let given = wanted.iter().filter_map(|one| match one {
        SetChoice::Set(set) => Some(set),
        SetChoice::None | SetChoice::Suggested => None,
    });
    let all: Vec<&Set> = given.chain(own.iter().map(|(set, _)| set)).collect();
    Ok(Some(LeftOut::of(&args.without, trace, &all)?))
}

/// Whether the trace has too few pages for a device with this many streams.
fn is_too_small(error: &ReplayError) -> bool {
    matches!(error, ReplayError::Config(ConfigError::TooSmall { .. }))
}

fn read_set(word: &str) -> anyhow::Result<SetChoice> {
    Ok(match word {
        "none" => SetChoice::None,
        SUGGESTED => SetChoice::Suggested,
        word => {
            let (set, warnings) = Set::load(word)?;
            for warning in &warnings {
                exit::say(&format!("warning: {warning}"));
            }
            SetChoice::Set(set)
        }
    })
}

/// The sets that are compared without --rules.
fn by_default(trace: &Trace) -> Vec<SetChoice> {
    let mut wanted = Vec::new();
    if let Some((set, _)) = sets::database_of(trace).and_then(|name| Set::load(name).ok()) {
        wanted.push(SetChoice::Set(set));
    }
    wanted.push(SetChoice::Suggested);
    wanted
}

fn ranges(args: &Args) -> Ranges<'_> {
    let device = &args.device;
    Ranges {
        utilisations: match &device.utilisation[..] {
            [] => &[UTILISATION],
            given => given,
        },
        over_provisionings: &device.common.op,
        policies: &device.common.policy,
        unit_pages: &device.ru_pages,
        trim: !args.replay.no_trim,
    }
}

/// The sets joined to the trace for each value of `--by`, in the given order; `None` stands for the
/// suggested set.
fn given(
    wanted: Vec<SetChoice>,
    trace: &Trace,
    args: &Args,
) -> anyhow::Result<Vec<Option<Vec<Joined>>>> {
    let mut names: Vec<String> = Vec::new();
    let mut given = Vec::new();
    for one in wanted {
        let (name, joined) = match one {
            SetChoice::None => continue,
            SetChoice::Set(set) => (set.name.clone(), Some(join(&set, trace, args)?)),
            SetChoice::Suggested => (SUGGESTED.to_owned(), None),
        };
        if names.contains(&name) {
            bail!("two rule sets have the name {name}; rename one of them");
        }
        // Matches do not depend on --by.
        let first = joined.iter().flatten().next();
        for pattern in first.into_iter().flat_map(Joined::idle) {
            exit::say(&format!(
                "note: {name}: {pattern:?} matches no file of the trace"
            ));
        }
        names.push(name);
        given.push(joined);
    }
    Ok(given)
}

/// Joins a set to the trace for each value of `--by`.
fn join(set: &Set, trace: &Trace, args: &Args) -> anyhow::Result<Vec<Joined>> {
    let joined = args.by().into_iter().map(|by| set.join(trace, by));
    Ok(joined.collect::<Result<_, _>>()?)
}

/// All sets, with the suggested one at its position, if there is one.
fn with_suggested(
    given: Vec<Option<Vec<Joined>>>,
    suggestion: Option<&Suggestion>,
    trace: &Trace,
    args: &Args,
) -> anyhow::Result<Vec<Joined>> {
    let suggested = suggestion.map(|suggestion| {
        let set = Set::of_labels(SUGGESTED, suggestion.rules.clone(), true);
        join(&set, trace, args)
    });
    let suggested = suggested.transpose()?;
    let sets = given.into_iter().map(|set| set.or(suggested.clone()));
    Ok(sets.flatten().flatten().collect())
}

struct Progress<'a> {
    interrupt: &'a Interrupt,
}

impl Watch for Progress<'_> {
    fn begins(&mut self, number: usize, count: usize, set: &str, placement: Placement) {
        exit::say(&format!(
            "simulating {number} of {count}: {set}, {}",
            placement_name(placement)
        ));
    }

    fn goes_on(&mut self) -> ControlFlow<()> {
        if self.interrupt.raised() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

fn page(found: &TraceResults<'_>) -> anyhow::Result<String> {
    let (classes, seen_s): (Vec<Class>, f64) = match found.suggestion {
        Some(suggestion) => (suggestion.classes.clone(), suggestion.seen_s),
        None => suggest::classes(found.trace, found.page_bytes),
    };
    let name = found.path.file_name().unwrap_or(found.path.as_os_str());
    let notes = format::notes(found)?;
    let content = Content {
        name: &name.to_string_lossy(),
        trace: &format::trace(found),
        facts: &facts(found)?,
        notes: &notes,
        runs: found.runs,
        sets: found.sets,
        classes: &classes,
        seen_s,
        suggestion: found.suggestion,
        directories: found.directories,
        left_out: found.left_out,
        device: found.device,
    };
    Ok(html::render(&document(&content)))
}

fn facts(found: &TraceResults<'_>) -> anyhow::Result<Vec<(String, String)>> {
    let mut facts = vec![(
        "trace".to_owned(),
        format::head(found).trim_end().replace('\n', "; "),
    )];
    for condition in found.conditions {
        let config = replay::device(found.footprint, &condition.device(found.device))?;
        let device = Device::new(config.clone())?;
        let lines = outcome::device_lines(&config, &device);
        facts.push((
            format!("device, {}", condition_words(*condition)),
            lines.trim_end().replace('\n', "; "),
        ));
    }
    facts.push(("handles".to_owned(), found.device.handles.to_string()));
    facts.push(("seed".to_owned(), found.device.seed.to_string()));
    Ok(facts)
}

/// All devices as JSON.
pub(super) fn devices(found: &TraceResults<'_>) -> anyhow::Result<Vec<Value>> {
    let mut devices = Vec::new();
    for condition in found.conditions {
        let options = condition.device(found.device);
        let config = replay::device(found.footprint, &options)?;
        let device = Device::new(config.clone())?;
        let mut value = outcome::device_json(&config, &device);
        value["utilisation"] = json!(options.utilisation);
        value["handles"] = json!(options.handles);
        value["trim"] = json!(options.trim);
        devices.push(value);
    }
    Ok(devices)
}
