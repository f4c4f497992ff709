//! `saiga tune`: settings of a host and of its databases, as plans that are shown, applied and
//! undone.
//!
//! The crate `saiga-tune` has the knobs, the journal and the planner of cores; this module has the
//! options, the terminal and the process that undoes a plan that is not confirmed.

mod apply;
pub(crate) mod configure;
mod history;
mod knobs;
mod move_pages;
mod plan;
mod prove;
pub(crate) mod running;
mod target;
mod undo;
mod units;
mod verify;
mod watch;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use saiga_process::root::Root;
use saiga_topology::machine::Machine;
use saiga_tune::plan::Plan;
use saiga_tune::store::{DIRECTORY, Directory, OpenError};

/// Attempts to take the lock, and the time between them: ten seconds together.
const LOCK_TRIES: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(100);

/// Options of `saiga tune`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Shows what would be changed and why, and writes it to a file; changes nothing
    Plan(Box<plan::Args>),
    /// Makes the changes of a plan, each after its old value is on the disk
    Apply(apply::Args),
    /// Keeps a plan that was applied with a time limit
    Confirm(apply::Confirm),
    /// Compares the host with a plan
    Verify(verify::Args),
    /// Puts the old values back
    Undo(undo::Args),
    /// Measures each change of a plan by an experiment, and keeps those that gain
    Prove(Box<prove::Args>),
    /// Lists the plans that were applied on this host
    History(history::Args),
    /// Lists the knobs, or describes one
    Knobs(knobs::Args),
    /// Shows the settings of a database server that should have other values; changes nothing
    Database(configure::Args),
    /// Moves the page cache of a running program to a NUMA node
    MovePages(move_pages::Args),
    /// Undoes a plan when its time to be confirmed has passed
    #[command(hide = true)]
    Watch(watch::Args),
}

/// Where the journals of plans are.
#[derive(Debug, Clone, clap::Args)]
struct JournalDir {
    /// Directory of the journals
    #[arg(long = "journal", value_name = "DIR", default_value = DIRECTORY)]
    dir: PathBuf,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.verb {
        Verb::Plan(args) => plan::run(&args),
        Verb::Apply(args) => apply::run(&args),
        Verb::Confirm(args) => apply::confirm(&args),
        Verb::Verify(args) => verify::run(&args),
        Verb::Undo(args) => undo::run(&args),
        Verb::Prove(args) => prove::run(*args),
        Verb::History(args) => history::run(&args),
        Verb::Knobs(args) => knobs::run(&args),
        Verb::Database(args) => configure::run(&args),
        Verb::MovePages(args) => move_pages::run(&args),
        Verb::Watch(args) => watch::run(&args),
    }
}

impl JournalDir {
    /// Takes the lock: for changes. The process that waits for a confirmation holds it for a moment
    /// now and then.
    #[expect(clippy::disallowed_methods, reason = "a lock has no event to wait for")]
    fn lock(&self) -> anyhow::Result<Directory> {
        for _ in 0..LOCK_TRIES {
            match Directory::lock(&self.dir) {
                Err(OpenError::Busy(_)) => thread::sleep(LOCK_PAUSE),
                taken => return Ok(taken?),
            }
        }
        Ok(Directory::lock(&self.dir)?)
    }

    fn read_only(&self) -> Directory {
        Directory::unlocked(&self.dir)
    }
}

/// Reads the facts about a machine.
fn machine(root: &Root) -> anyhow::Result<Machine> {
    saiga_topology::read::read(root).context("cannot read the machine")
}

/// Reads a plan from its file.
fn read_plan(path: &Path) -> anyhow::Result<Plan> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the plan {}", path.display()))?;
    Plan::from_toml(&text).with_context(|| path.display().to_string())
}

/// Seconds since 1970.
fn now_s() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}
