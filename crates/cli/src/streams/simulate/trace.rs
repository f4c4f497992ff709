//! A recorded trace under one stream and under every rule set, initially and persistently isolated.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context as _, bail};
use saiga_document::html;
use saiga_experiment::interrupt::Interrupt;
use saiga_ftl::replay::{self, Footprint, Options, Placement, ReplayError};
use saiga_ftl::trace::Trace;
use saiga_ftl::{ConfigError, Device};
use saiga_whatif::compare::{Watch, compare, placement_name};
use saiga_whatif::document::{Content, document, policy_name, unit_words};
use saiga_whatif::suggest::{Class, SuggestError};
use saiga_whatif::{Condition, Joined, Run, Set, Suggestion, sets, suggest};
use serde_json::{Value, json};

use super::super::{suggested, trace_file};
use super::{Args, json as values, outcome, words};
use crate::{exit, outfile};

/// What the set is called that comes from the trace itself.
const SUGGESTED: &str = "suggested";

/// A word of `--rules`.
enum Wanted {
    /// One stream is always there.
    None,
    Suggested,
    Set(Set),
}

/// All that was found.
pub(super) struct Found<'a> {
    pub(super) path: &'a Path,
    pub(super) trace: &'a Trace,
    pub(super) footprint: &'a Footprint,
    pub(super) page_bytes: u64,
    /// What all devices have in common.
    pub(super) device: &'a Options,
    pub(super) conditions: &'a [Condition],
    pub(super) sets: &'a [Joined],
    pub(super) runs: &'a [Run],
    pub(super) suggestion: Option<&'a Suggestion>,
}

/// Answers text and JSON, and writes the report.
pub(super) fn simulate(path: &Path, args: &Args) -> anyhow::Result<(String, Value)> {
    if let Some(report) = &args.report {
        outfile::check(report)?;
    }
    let mut wanted = Vec::new();
    for word in &args.rules {
        wanted.push(read_set(word)?);
    }
    let trace = trace_file::read(path)?;
    if let Some(holes) = suggested::holes(&trace) {
        exit::say(&format!("warning: {holes}"));
    }
    let footprint =
        Footprint::of(&trace, args.page_bytes).with_context(|| path.display().to_string())?;
    let conditions = conditions(args, &footprint);
    let device = args.device.options(args.handles);
    // A device that cannot be is said before the work.
    for condition in &conditions {
        Device::new(replay::device(&footprint, &condition.device(&device))?)?;
    }
    let interrupt = Interrupt::on_signals().context("cannot watch for Ctrl-C")?;
    let is_asked = !wanted.is_empty();
    if !is_asked {
        wanted = by_default(&trace);
    }
    // What is wrong with the given sets is said before the search for the suggested one.
    let given = given(wanted, &trace, args)?;
    let mut suggestion = None;
    if given.iter().any(Option::is_none) {
        let first = conditions[0].device(&device);
        let found = suggested::suggest(
            &trace,
            &footprint,
            &first,
            args.page_bytes,
            args.simulations,
            &|| interrupt.raised(),
        );
        match found {
            Err(SuggestError::NoFiles | SuggestError::NoTime) if !is_asked => {}
            found => suggestion = Some(found.with_context(|| path.display().to_string())?),
        }
    }
    let mut joined = with_suggested(given, suggestion.as_ref(), &trace, args)?;
    let none = sets::none(&trace);
    let watch = &mut Progress {
        interrupt: &interrupt,
    };
    let runs = match compare(&footprint, &none, &joined, &conditions, &device, watch) {
        Err(error) if !is_asked && is_too_small(&error) => {
            exit::say(&format!(
                "note: one stream only, for the rest does not fit: {error}"
            ));
            joined.clear();
            compare(&footprint, &none, &[], &conditions, &device, watch)
        }
        runs => runs,
    }?;
    let found = Found {
        path,
        trace: &trace,
        footprint: &footprint,
        page_bytes: args.page_bytes,
        device: &device,
        conditions: &conditions,
        sets: &joined,
        runs: &runs,
        suggestion: suggestion.as_ref(),
    };
    if let Some(report) = &args.report {
        outfile::write(report, &page(&found)?)?;
    }
    Ok((words::text(&found)?, values::json(&found, &args.by())?))
}

/// Whether a trace has too few pages for a device with so many streams.
fn is_too_small(error: &ReplayError) -> bool {
    matches!(error, ReplayError::Config(ConfigError::TooSmall { .. }))
}

fn read_set(word: &str) -> anyhow::Result<Wanted> {
    Ok(match word {
        "none" => Wanted::None,
        SUGGESTED => Wanted::Suggested,
        word => {
            let (set, warnings) = Set::load(word)?;
            for warning in &warnings {
                exit::say(&format!("warning: {warning}"));
            }
            Wanted::Set(set)
        }
    })
}

/// What is compared when nothing is asked for.
fn by_default(trace: &Trace) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    if let Some((set, _)) = sets::database_of(trace).and_then(|name| Set::load(name).ok()) {
        wanted.push(Wanted::Set(set));
    }
    wanted.push(Wanted::Suggested);
    wanted
}

/// Every utilisation with every size of units and every policy, each once; without discards, too, where the trace has some.
fn conditions(args: &Args, footprint: &Footprint) -> Vec<Condition> {
    let utilisations = match &args.device.utilisation[..] {
        [] => &[Options::default().utilisation],
        given => given,
    };
    let trims = match (args.no_trim, footprint.totals().discards) {
        (true, _) => &[false][..],
        (false, 0) => &[true],
        (false, _) => &[true, false],
    };
    let unit_sizes: Vec<Option<u32>> = match &args.device.ru_pages[..] {
        [] => vec![None],
        given => given.iter().copied().map(Some).collect(),
    };
    let mut conditions = Vec::new();
    for &utilisation in utilisations {
        for &unit_pages in &unit_sizes {
            for &policy in &args.device.policy {
                for &trim in trims {
                    let condition = Condition {
                        utilisation,
                        unit_pages,
                        policy,
                        trim,
                    };
                    if !conditions.contains(&condition) {
                        conditions.push(condition);
                    }
                }
            }
        }
    }
    conditions
}

/// The sets on the trace by all that `--by` has, in the order in which they were asked for; `None`
/// is where the suggested one comes.
fn given(
    wanted: Vec<Wanted>,
    trace: &Trace,
    args: &Args,
) -> anyhow::Result<Vec<Option<Vec<Joined>>>> {
    let mut names: Vec<String> = Vec::new();
    let mut given = Vec::new();
    for one in wanted {
        let (name, joined) = match one {
            Wanted::None => continue,
            Wanted::Set(set) => (set.name.clone(), Some(join(&set, trace, args)?)),
            Wanted::Suggested => (SUGGESTED.to_owned(), None),
        };
        if names.contains(&name) {
            bail!("two rule sets are called {name}; give one of them another name");
        }
        // Rules match the same files whatever tells their streams apart.
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

/// A set by all that `--by` has.
fn join(set: &Set, trace: &Trace, args: &Args) -> anyhow::Result<Vec<Joined>> {
    let joined = args.by().into_iter().map(|by| set.join(trace, by));
    Ok(joined.collect::<Result<_, _>>()?)
}

/// All sets, with the suggested one in its place, if there is one.
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

/// The report as one page.
fn page(found: &Found<'_>) -> anyhow::Result<String> {
    let (classes, seen_s): (Vec<Class>, f64) = match found.suggestion {
        Some(suggestion) => (suggestion.classes.clone(), suggestion.seen_s),
        None => suggest::classes(found.trace, found.page_bytes),
    };
    let name = found.path.file_name().unwrap_or(found.path.as_os_str());
    let notes = words::notes(found);
    let content = Content {
        name: &name.to_string_lossy(),
        trace: &words::trace(found),
        facts: &facts(found)?,
        notes: &notes,
        runs: found.runs,
        sets: found.sets,
        classes: &classes,
        seen_s,
        suggestion: found.suggestion,
        device: found.device,
    };
    Ok(html::render(&document(&content)))
}

fn facts(found: &Found<'_>) -> anyhow::Result<Vec<(String, String)>> {
    let mut facts = vec![(
        "trace".to_owned(),
        words::head(found).trim_end().replace('\n', "; "),
    )];
    for condition in found.conditions {
        let config = replay::device(found.footprint, &condition.device(found.device))?;
        let device = Device::new(config.clone())?;
        let lines = outcome::device_lines(&config, &device);
        let used = super::percent(condition.utilisation);
        facts.push((
            format!(
                "device, {used} live, {}{}{}",
                unit_words(condition.unit_pages),
                policy_name(condition.policy),
                words::discards(*condition)
            ),
            lines.trim_end().replace('\n', "; "),
        ));
    }
    facts.push(("handles".to_owned(), found.device.handles.to_string()));
    facts.push(("seed".to_owned(), found.device.seed.to_string()));
    Ok(facts)
}

/// What every device is, as JSON.
pub(super) fn devices(found: &Found<'_>) -> anyhow::Result<Vec<Value>> {
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
