//! `saiga streams record`: traces block writes while a program runs, a process lives, or for a
//! time.

mod ending;
mod options;
mod progress;
pub(super) mod recording;
pub(super) mod summary;
mod target;
mod volume;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use saiga_process::interrupt::Interrupt;
use saiga_record::Options;

use crate::{exit, outfile};
pub(super) use options::RecordOptions;
use target::{End, Target};
use volume::BackingVolume;

/// Options of `saiga streams record`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "saiga streams record --out FILE [OPTIONS] DIR... -- CMD [ARGS]...\n       \
                      saiga streams record --out FILE [OPTIONS] [DIR]... --pid PID [--for TIME]\n \
                            \
                      saiga streams record --out FILE [OPTIONS] DIR... --for TIME",
    after_help = "Needs root. Records every write and discard that reaches the block layer on the \
file systems of the directories, with the file that each belongs to, in the format of docs/ftl.md. \
Ctrl-C and SIGTERM end the recording and keep the trace; SIGTERM is sent to the process group of \
CMD, and `record` waits for CMD to end.\n\
Exit status: 1 when CMD failed or events were lost; the trace is kept and the failure reported."
)]
pub(super) struct Args {
    /// Write the trace to this file, which must not exist
    #[arg(long, value_name = "FILE", required = true)]
    out: PathBuf,
    #[command(flatten)]
    wanted: RecordOptions,
    /// Record while this program runs
    #[arg(last = true, value_name = "CMD", conflicts_with_all = ["pid", "time"])]
    command: Vec<String>,
    /// Make a file system of this size in an image file, mount it at DIR for the recording, and
    /// remove it afterwards
    #[arg(long = "loop", id = "loop_size", value_name = "SIZE", value_parser = volume::size, conflicts_with = "pid")]
    loop_size: Option<u64>,
    /// With --loop: type of the file system
    #[arg(long, value_enum, default_value = "xfs", requires = "loop_size")]
    fs: volume::Kind,
    /// With --loop: directory of the image file
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/var/tmp",
        requires = "loop_size"
    )]
    image_dir: PathBuf,
    /// With --loop: command for sh, run in DIR before the recording to load the data
    #[arg(long, value_name = "SHELL", requires = "loop_size")]
    prepare: Option<String>,
    /// With --loop: command for sh, run in DIR after the recording
    #[arg(long, value_name = "SHELL", requires = "loop_size")]
    after: Option<String>,
}

pub(super) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let target = args.wanted.target(&args.command)?;
    let options = args.wanted.options(&target, real(&args.out)?)?;
    let interrupt = Interrupt::on_signals_without_exit().context("cannot watch for Ctrl-C")?;
    let is_well = match args.loop_size {
        None => record(&options, &target, &interrupt)?,
        Some(bytes) => {
            let volume = BackingVolume::make(&args, bytes, &options, &interrupt)?;
            let recorded = volume
                .prepare(args.prepare.as_deref(), &interrupt)
                .and_then(|()| record(&options, &target, &interrupt));
            // Runs also after an error: ends processes that use the volume, and names those that
            // remain.
            let left = volume.leave(args.after.as_deref(), &interrupt);
            both(recorded, left).map(|(recorded, left)| recorded && left)?
        }
    };
    Ok(if is_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(exit::NO)
    })
}

/// Checks that `out` can be written, and resolves its directory: a symbolic link could lead below
/// the mount point of --loop.
fn real(out: &Path) -> anyhow::Result<PathBuf> {
    outfile::check(out)?;
    let out = std::path::absolute(out)?;
    let folder = out.parent().map_or(Ok(PathBuf::new()), Path::canonicalize);
    let folder = folder.with_context(|| format!("cannot write {}", out.display()))?;
    Ok(folder.join(out.file_name().unwrap_or_default()))
}

/// Returns both values or the first error; prints a second error.
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

/// Records and prints the summary. Returns whether the program succeeded and no event was lost.
fn record(options: &Options, target: &Target, interrupt: &Interrupt) -> anyhow::Result<bool> {
    let recorded = recording::record(options, target, interrupt)?;
    let tally = &recorded.tally;
    let printed = crate::print::print_text(&summary::text(options, &recorded.directories, tally));
    for warning in summary::warnings(tally) {
        exit::say(&warning);
    }
    let is_complete = tally.lost == 0;
    let is_well = match recorded.end {
        End::Success => is_complete,
        End::Failed(how) => {
            exit::say(&format!("{how}; the trace is kept, but may be incomplete"));
            false
        }
    };
    match printed {
        // A closed pipe does not hide a failure: the exit code below still reports it.
        Err(error) if exit::is_broken_pipe(&error) => {}
        printed => printed?,
    }
    Ok(is_well)
}
