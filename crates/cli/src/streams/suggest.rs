//! `saiga streams suggest`: proposes rules from a trace of the database's writes.

mod live;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::ArgGroup;
use saiga_ftl::Device;
use saiga_ftl::replay::{self, Footprint, Options};
use saiga_ftl::trace::{Op, Row, Trace};
use saiga_process::interrupt::Interrupt;
use saiga_whatif::compare::Ranges;
use saiga_whatif::{Condition, Replays, Suggestion, suggest};

use super::device_options::{DeviceOptions, TraceOptions};
use super::record::RecordOptions;
use super::simulate::outcome;
use super::{suggested, trace_file};
use crate::print::{print_json, print_text};
use crate::{exit, outfile};
use live::LiveTrace;
use saiga_process::available_memory;

/// Pages of the device on which the options are tried: the maximum that a search simulates.
const TRIED_PAGES: u64 = 65_536;

/// Options of `saiga streams suggest`.
#[derive(Debug, clap::Args)]
#[command(
    group = ArgGroup::new("source").required(true).multiple(true).args(["trace", "pid", "time"]),
    override_usage = "saiga streams suggest [OPTIONS] --trace FILE\n       \
                      saiga streams suggest [OPTIONS] DIR... --for TIME\n       \
                      saiga streams suggest [OPTIONS] [DIR]... --pid PID [--for TIME]",
    after_help = "\
Prints rules for the labeller and `simulate`, each with the figures behind it; labels \
nothing. Streams are found by simulation on the first device that the options describe. The \
built-in \
set of the database, or astream's, is used instead if it is better on any of the devices. The same \
trace and options give the same rules.\n\
Without --trace, records first, as `saiga streams record` does; that needs root. Ctrl-C ends the \
recording and makes rules from what was recorded; a second Ctrl-C gives up.\n\
Exit status: 1 when events were lost, 2 when no rules can be proposed."
)]
pub(super) struct Args {
    /// Use this recorded trace
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dirs", "pid", "time", "via", "buffer", "sample", "keep"])]
    trace: Option<PathBuf>,
    #[command(flatten)]
    wanted: RecordOptions,
    /// Keep the recorded trace in this file, which must not exist
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// Write the rules to this file, and print the figures
    #[arg(long, value_name = "FILE.toml")]
    out: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceOptions,
    /// Share of the logical pages that hold data; several values, such as 0.7,0.9
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "0.9",
        value_delimiter = ','
    )]
    utilisation: Vec<f64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    replay: TraceOptions,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(out) = &args.out {
        // A file of another name would be read as astream's grammar.
        anyhow::ensure!(
            out.extension().is_some_and(|ending| ending == "toml"),
            "{}: the name of a rule file must end in .toml",
            out.display()
        );
        outfile::check(out)?;
    }
    let suggestion = match &args.trace {
        Some(path) => from_trace(path, args)?,
        None => from_recording(args)?,
    };
    for place in &suggestion.skipped {
        exit::say(&format!(
            "note: {place} is outside the recorded directories; rules cannot match it"
        ));
    }
    let rules = suggestion.rules.to_toml();
    if let Some(out) = &args.out {
        outfile::write(out, &rules)?;
    }
    if args.json {
        print_json(&suggested::as_json(&suggestion))?;
    } else if args.out.is_some() {
        print_text(&seen(&suggestion))?;
    } else {
        print_text(&rules)?;
    }
    Ok(match suggestion.lost {
        None | Some(0) => ExitCode::SUCCESS,
        Some(_) => ExitCode::from(exit::NO),
    })
}

fn from_trace(path: &Path, args: &Args) -> anyhow::Result<Suggestion> {
    let trace = trace_file::read(path)?;
    if let Some(holes) = suggested::holes(&trace) {
        exit::say(&format!("warning: {holes}"));
    }
    let interrupt = Interrupt::on_signals().context("cannot watch for Ctrl-C")?;
    let found = suggestion(&trace, args, &|| interrupt.raised());
    found.with_context(|| format!("{}", path.display()))
}

/// Records first. The recording reports lost events itself.
fn from_recording(args: &Args) -> anyhow::Result<Suggestion> {
    if let (Some(keep), Some(out)) = (&args.keep, &args.out) {
        let is_one = std::path::absolute(keep)? == std::path::absolute(out)?;
        anyhow::ensure!(!is_one, "--keep and --out name the same file");
    }
    // Invalid options are reported before the recording.
    try_options(args)?;
    let live = LiveTrace::record(&args.wanted, args.keep.as_deref())?;
    suggestion(&live.trace, args, &|| live.is_given_up()).context("the recording")
}

fn suggestion(
    trace: &Trace,
    args: &Args,
    is_given_up: &dyn Fn() -> bool,
) -> anyhow::Result<Suggestion> {
    let footprint = Footprint::of(trace, args.replay.page_bytes)?;
    let conditions = conditions(args, footprint.totals().discards > 0);
    let base = device(args);
    if let Some(few) = few_units(&footprint, &conditions, &base) {
        exit::say(&format!("note: {few}"));
    }
    let options = suggest::Options {
        conditions,
        page_bytes: args.replay.page_bytes,
        simulations: args.replay.simulations,
    };
    let replays = &mut Replays::new(&footprint, &base);
    Ok(suggested::suggest(trace, replays, &options, is_given_up)?)
}

/// A note on the first device with too few reclaim units. The search reports impossible devices.
fn few_units(footprint: &Footprint, conditions: &[Condition], base: &Options) -> Option<String> {
    conditions.iter().find_map(|condition| {
        let config = replay::device(footprint, &condition.device(base)).ok()?;
        outcome::few_units(&Device::new(config).ok()?)
    })
}

fn conditions(args: &Args, has_discards: bool) -> Vec<Condition> {
    let ranges = Ranges {
        utilisations: &args.utilisation,
        over_provisionings: &args.device.op,
        policies: &args.device.policy,
        unit_pages: &[],
        trim: !args.replay.no_trim,
    };
    ranges.conditions(has_discards)
}

/// The device, without the values that conditions supply.
fn device(args: &Args) -> Options {
    Options {
        handles: args.replay.handles,
        seed: args.device.seed,
        memory_bytes: available_memory::available_bytes(),
        ..Options::default()
    }
}

/// Builds the devices of the options for a trace of one write, to report errors early.
fn try_options(args: &Args) -> anyhow::Result<()> {
    let write = Row {
        t_ns: 0,
        lba: 0,
        len: TRIED_PAGES * args.replay.page_bytes.min(1 << 20),
        op: Op::Write,
        file: None,
    };
    let trace = Trace {
        rows: [write].into_iter().collect(),
        ..Trace::default()
    };
    let footprint = Footprint::of(&trace, args.replay.page_bytes)?;
    for condition in conditions(args, false) {
        let options = condition.device(&device(args));
        Device::new(replay::device(&footprint, &options)?)?;
    }
    Ok(())
}

fn seen(suggestion: &Suggestion) -> String {
    let mut text = suggested::table(&suggestion.classes, suggestion.seen_s);
    if let Some(sampling) = suggestion.sampled {
        let _ = writeln!(text, "\n{}", suggested::sample_words(sampling));
    }
    if let Some(searched) = &suggestion.searched {
        let _ = writeln!(
            text,
            "\n{} simulations on a sample of {} pages: write amplification {:.3} with one stream, \
             {:.3} at the start, {:.3} for the result",
            searched.simulations, searched.pages, searched.none, searched.start, searched.found
        );
        if let Some(whole) = &suggestion.whole {
            let _ = writeln!(text, "{}", whole.summary());
        }
    } else {
        text.push_str(
            "\nnote: nothing was simulated, because the trace has too few pages or --simulations \
             is below 3; streams follow from lifetimes only\n",
        );
    }
    text
}
