//! `saiga streams record`: what a database writes, block by block, while a program runs or another one does.

mod ending;
mod progress;
pub(super) mod recording;
pub(super) mod summary;
mod target;
mod volume;
mod wanted;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use saiga_experiment::interrupt::Interrupt;
use saiga_record::Options;

use crate::{exit, outfile};
use target::{End, Target};
use volume::Ground;
pub(super) use wanted::Wanted;

/// Options of `saiga streams record`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "saiga streams record --out FILE [OPTIONS] DIR... -- CMD [ARGS]...\n       \
                      saiga streams record --out FILE [OPTIONS] [DIR]... --pid PID [--for TIME]\n       \
                      saiga streams record --out FILE [OPTIONS] DIR... --for TIME",
    after_help = "Needs root. What is recorded is what reaches the block layer: every write and discard on the file systems of the \
directories, each with the file that it belongs to, in the format of docs/ftl.md. Ctrl-C and SIGTERM end the recording and \
keep the trace; CMD is sent SIGTERM, with its process group, and waited for.\nExit status: 1 when CMD failed or events were lost; the trace is kept, and what happened is said."
)]
pub(super) struct Args {
    /// The trace to write; must not exist
    #[arg(long, value_name = "FILE", required = true)]
    out: PathBuf,
    #[command(flatten)]
    wanted: Wanted,
    /// Records while this program runs
    #[arg(last = true, value_name = "CMD", conflicts_with_all = ["pid", "time"])]
    command: Vec<String>,
    /// Records on a file system of this size that is made for it in a file, mounted at DIR, and removed in the end
    #[arg(long = "loop", id = "loop_size", value_name = "SIZE", value_parser = volume::size, conflicts_with = "pid")]
    loop_size: Option<u64>,
    /// With --loop: which file system
    #[arg(long, value_enum, default_value = "xfs", requires = "loop_size")]
    fs: volume::Kind,
    /// With --loop: where the file lies
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/var/tmp",
        requires = "loop_size"
    )]
    image_dir: PathBuf,
    /// With --loop: runs this before the recording, in DIR, to load the data
    #[arg(long, value_name = "SHELL", requires = "loop_size")]
    prepare: Option<String>,
    /// With --loop: runs this after the recording, in DIR
    #[arg(long, value_name = "SHELL", requires = "loop_size")]
    after: Option<String>,
}

/// Records until the end.
pub(super) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let target = args.wanted.target(&args.command)?;
    let options = args.wanted.options(&target, real(&args.out)?)?;
    let interrupt = Interrupt::on_signals_without_exit().context("cannot watch for Ctrl-C")?;
    let is_well = match args.loop_size {
        None => record(&options, &target, &interrupt)?,
        Some(bytes) => {
            let ground = Ground::make(&args, bytes, &options, &interrupt)?;
            let recorded = ground
                .prepare(args.prepare.as_deref(), &interrupt)
                .and_then(|()| record(&options, &target, &interrupt));
            // Whatever has failed: who works there is told to go, and named if he stays.
            let left = ground.leave(args.after.as_deref(), &interrupt);
            both(recorded, left).map(|(recorded, left)| recorded && left)?
        }
    };
    Ok(if is_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(exit::NO)
    })
}

/// A file that can be written, in its real folder: by another name it may be in one that a file system will cover.
fn real(out: &Path) -> anyhow::Result<PathBuf> {
    outfile::check(out)?;
    let out = std::path::absolute(out)?;
    let folder = out.parent().map_or(Ok(PathBuf::new()), Path::canonicalize);
    let folder = folder.with_context(|| format!("cannot write {}", out.display()))?;
    Ok(folder.join(out.file_name().unwrap_or_default()))
}

/// Both, or the first failure; a second one is said.
fn both<A, B>(first: anyhow::Result<A>, second: anyhow::Result<B>) -> anyhow::Result<(A, B)> {
    match (first, second) {
        (Ok(first), Ok(second)) => Ok((first, second)),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
        (Err(error), Err(other)) => {
            exit::say(&format!("{other:#}"));
            Err(error)
        }
    }
}

/// The recording itself; whether all went well.
fn record(options: &Options, target: &Target, interrupt: &Interrupt) -> anyhow::Result<bool> {
    let recorded = recording::record(options, target, interrupt)?;
    let tally = &recorded.tally;
    let told = super::tell(&summary::text(options, &recorded.directories, tally));
    for warning in summary::warnings(tally) {
        exit::say(&warning);
    }
    let is_complete = tally.lost == 0;
    let is_well = match recorded.end {
        End::Wanted => is_complete,
        End::Failed(how) => {
            exit::say(&format!(
                "{how}; the trace is kept, and may not be what was wanted"
            ));
            false
        }
    };
    match told {
        // Who has seen enough of the table has not seen what is wrong.
        Err(error) if exit::is_broken_pipe(&error) => {}
        told => told?,
    }
    Ok(is_well)
}
