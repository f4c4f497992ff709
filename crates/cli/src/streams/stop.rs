//! `saiga streams stop`: ends labellers by the directories that they label.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use saiga_streams::holder::{Holder, holders};
use saiga_streams::lock::LOCK_DIR;

use super::tell;
use crate::exit;

/// Options of `saiga streams stop`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Ends the whole labeller of a directory, also where it labels others besides, and returns when it is gone. \
What it has labelled stays labelled until the kernel forgets it.\nExit status: 1 when there is none for a directory; 2 when \
one could not be ended."
)]
pub(super) struct Args {
    /// Data directories, as the labeller was given them or by another path
    #[arg(value_name = "DIR", required_unless_present = "all")]
    dirs: Vec<PathBuf>,
    /// End every labeller whose lock is in --lock-dir
    #[arg(long, conflicts_with = "dirs")]
    all: bool,
    /// Where the labellers keep their locks
    #[arg(long, value_name = "DIR", default_value = LOCK_DIR)]
    lock_dir: PathBuf,
    /// Wait at most this long for each to be gone
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = humantime::parse_duration)]
    limit: Duration,
}

/// Ends them.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let all = holders(&args.lock_dir)?;
    let place = args.lock_dir.display();
    if args.all && all.is_empty() {
        exit::say(&format!(
            "no labeller is at work: nobody holds a lock in {place}"
        ));
        return Ok(ExitCode::from(exit::NO));
    }
    let mut is_missing = false;
    for dir in &args.dirs {
        if !all.iter().any(|holder| holder.labels(dir)) {
            let dir = dir.display();
            exit::say(&format!(
                "no labeller is at work on {dir}: nobody holds a lock for it in {place}"
            ));
            is_missing = true;
        }
    }
    let is_meant = |holder: &&Holder| args.all || args.dirs.iter().any(|dir| holder.labels(dir));
    for holder in all.iter().filter(is_meant) {
        holder.end(args.limit)?;
        let dirs: Vec<String> = holder
            .dirs()
            .map(Path::display)
            .map(|it| it.to_string())
            .collect();
        tell(&format!(
            "ended the labeller of {} (pid {})\n",
            dirs.join(", "),
            holder.pid()
        ))?;
    }
    Ok(if is_missing {
        ExitCode::from(exit::NO)
    } else {
        ExitCode::SUCCESS
    })
}
