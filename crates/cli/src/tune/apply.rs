//! `saiga tune apply` and `confirm`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use saiga_process::root::Root;
use saiga_tune::apply::{OnFailure, Options, apply};
use saiga_tune::confirm;
use saiga_tune::host::LiveHost;
use saiga_tune::identity::Identity;
use serde_json::json;

use super::{JournalDir, machine, now_s, read_plan, watch};
use crate::exit;
use crate::print::{print_json, print_text};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Refuses when the machine or a value is not as the plan found it. A step that fails ends the plan, \
and the steps before it are undone.\n\
A plan that changes network devices or interrupts may cut the connection to this host. It is undone \
after the time of --confirm-within, unless `saiga tune confirm ID` is called before.")]
pub(super) struct Args {
    /// The plan, as written by `saiga tune plan`
    #[arg(value_name = "FILE")]
    plan: PathBuf,
    /// Time to confirm a plan that may cut the connection
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = humantime::parse_duration)]
    confirm_within: Duration,
    /// Keep the steps that were made when a later one fails
    #[arg(long)]
    keep: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    journal: JournalDir,
}

#[derive(Debug, clap::Args)]
pub(super) struct Confirm {
    /// The id that `apply` printed; the beginning is enough
    id: String,
    #[command(flatten)]
    journal: JournalDir,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let plan = read_plan(&args.plan)?;
    anyhow::ensure!(
        !args.confirm_within.is_zero(),
        "--confirm-within must be greater than zero"
    );
    let found = Identity::of(&machine(&Root::host())?);
    let mut host = LiveHost::new(Root::host());
    let mut store = args.journal.lock()?;
    let options = Options {
        on_failure: if args.keep {
            OnFailure::Keep
        } else {
            OnFailure::Undo
        },
        confirm_within_s: Some(args.confirm_within.as_secs().max(1)),
        now_s: now_s(),
    };
    let mut started = |id: &str| watch::start(id, &args.journal.dir);
    let applied = apply(&plan, &found, &mut host, &mut store, options, &mut started)?;
    for irq in &applied.managed {
        exit::say(&format!("{irq}: only the kernel places this interrupt"));
    }
    for name in &applied.absent {
        exit::say(&format!(
            "{name}: gone with the queues that the plan removed"
        ));
    }
    let within = applied.confirm_within_s;
    if args.json {
        print_json(&json!({
            "id": applied.id,
            // For people: the process that waits counts the time since the boot.
            "undone_unless_confirmed_at": within.map(|seconds| now_s().saturating_add(seconds)),
            "placed_by_the_kernel": applied.managed,
            "gone_with_their_queues": applied.absent,
        }))?;
    } else {
        print_text(&format!("applied as {}\n", applied.id))?;
    }
    if within.is_some() {
        exit::say(&format!(
            "the plan is undone in {} unless you run `saiga tune confirm {}`",
            humantime::format_duration(args.confirm_within),
            applied.id
        ));
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn confirm(args: &Confirm) -> anyhow::Result<ExitCode> {
    let mut host = LiveHost::new(Root::host());
    let mut store = args.journal.lock()?;
    confirm::confirm(&args.id, &mut host, &mut store, now_s())
        .context("the plan is not confirmed")?;
    print_text("confirmed\n")?;
    Ok(ExitCode::SUCCESS)
}
