//! `saiga streams stop`: stops labellers by the directories that they label.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use saiga_streams::holder::{Holder, holders};
use saiga_streams::lock::LOCK_DIR;

use crate::exit;
use crate::print::print_text;

/// Options of `saiga streams stop`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Stops the labeller of a directory for all its directories, and returns when the \
process has ended. Files keep their hints until the kernel drops their inodes from memory.\n\
Exit status: 1 when no labeller runs for a directory; 2 when a labeller could not be stopped."
)]
pub(super) struct Args {
    /// Data directories, by any path
    #[arg(value_name = "DIR", required_unless_present = "all")]
    dirs: Vec<PathBuf>,
    /// Stop every labeller whose lock is in --lock-dir
    #[arg(long, conflicts_with = "dirs")]
    all: bool,
    /// Directory with the locks of the labellers
    #[arg(long, value_name = "DIR", default_value = LOCK_DIR)]
    lock_dir: PathBuf,
    /// Wait at most this long for each labeller to end
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = humantime::parse_duration)]
    limit: Duration,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let all = holders(&args.lock_dir)?;
    let place = args.lock_dir.display();
    if args.all && all.is_empty() {
        exit::say(&format!(
            "no labeller is running: no process holds a lock in {place}"
        ));
        return Ok(ExitCode::from(exit::NO));
    }
    let mut is_missing = false;
    for dir in &args.dirs {
        if !all.iter().any(|holder| holder.labels(dir)) {
            let dir = dir.display();
            exit::say(&format!(
                "no labeller is running for {dir}: no process holds its lock in {place}"
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
        print_text(&format!(
            "stopped the labeller of {} (pid {})\n",
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
