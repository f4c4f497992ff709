//! `saiga streams suggest`: rules from what was seen of the files of a database.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::ArgGroup;
use saiga_experiment::interrupt::Interrupt;
use saiga_ftl::Policy;
use saiga_ftl::replay::{Footprint, Options};
use saiga_whatif::Suggestion;

use super::simulate::{SIMULATIONS, policy};
use super::{suggested, tell, tell_json};
use crate::{exit, outfile};

/// Options of `saiga streams suggest`.
#[derive(Debug, clap::Args)]
#[command(
    group = ArgGroup::new("source").required(true),
    after_help = "Prints rules that the labeller and simulate read, each with what was seen; nothing is labelled. Streams are \
found by simulation on the device that the options describe. The same trace and options give the same rules.\n\
Exit status: 2 when there is nothing to suggest."
)]
pub(super) struct Args {
    /// What was recorded
    #[arg(long, group = "source", value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write the rules into this file, and print what was seen
    #[arg(long, value_name = "FILE.toml")]
    out: Option<PathBuf>,
    /// Streams that the device keeps apart
    #[arg(long, value_name = "N", default_value_t = 8)]
    handles: usize,
    /// Spare space as a share of the logical pages
    #[arg(long, value_name = "SHARE", default_value_t = 0.07)]
    op: f64,
    /// Share of the logical pages that hold data
    #[arg(long, value_name = "SHARE", default_value_t = 0.9)]
    utilisation: f64,
    /// Which unit is collected: greedy, fifo, cost-benefit, or choice:D for the best of D
    #[arg(long, value_name = "POLICY", default_value = "greedy", value_parser = policy)]
    policy: Policy,
    /// Bytes of a page
    #[arg(long, value_name = "BYTES", default_value_t = 4096)]
    page_bytes: u64,
    /// Do not tell the device of discards
    #[arg(long)]
    no_trim: bool,
    /// Simulations that may be made
    #[arg(long, value_name = "N", default_value_t = SIMULATIONS)]
    simulations: u32,
    /// Where random choices begin
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Suggests rules.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(out) = &args.out {
        outfile::check(out)?;
    }
    let path = args.trace.as_deref().context("name a --trace")?;
    let shown = path.display();
    let trace = suggested::read(path)?;
    let footprint = Footprint::of(&trace, args.page_bytes).with_context(|| format!("{shown}"))?;
    let device = Options {
        utilisation: args.utilisation,
        over_provisioning: args.op,
        policy: args.policy,
        handles: args.handles,
        trim: !args.no_trim,
        seed: args.seed,
        ..Options::default()
    };
    let interrupt = Interrupt::on_signals().context("cannot watch for Ctrl-C")?;
    let suggestion = suggested::suggest(
        &trace,
        &footprint,
        &device,
        args.page_bytes,
        args.simulations,
        &interrupt,
    )
    .with_context(|| format!("{shown}"))?;
    for place in &suggestion.skipped {
        exit::say(&format!(
            "note: {place} is outside the recorded directories; no rule can name it"
        ));
    }
    let rules = suggestion.rules.to_toml();
    if let Some(out) = &args.out {
        outfile::write(out, &rules)?;
    }
    if args.json {
        tell_json(&suggested::as_json(&suggestion))?;
    } else if args.out.is_some() {
        tell(&seen(&suggestion))?;
    } else {
        tell(&rules)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn seen(suggestion: &Suggestion) -> String {
    let mut text = suggested::table(&suggestion.classes, suggestion.seen_s);
    if let Some(searched) = &suggestion.searched {
        let _ = writeln!(
            text,
            "\n{} simulations on a sample of {} pages: write amplification {:.3} with one stream, {:.3} by lifetime, {:.3} found",
            searched.simulations, searched.pages, searched.none, searched.start, searched.found
        );
    } else {
        text.push_str(
            "\nnote: too few pages for a simulated device; streams are by lifetime only\n",
        );
    }
    text
}
