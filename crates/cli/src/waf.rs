//! `saiga waf watch|report|probe|record|timer|alerts`: write amplification by the drive's own counters.
//!
//! What is read and how it is divided is the library's affair; here are files, intervals, and words.

mod probe;
mod report;
mod timer;
mod watch;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;

/// Options of `saiga waf`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Puts samples of drives' counters into a file, once or at intervals
    Watch(watch::Args),
    /// Shows what the samples say: the factor of each interval and of all
    Report(report::Args),
    /// Shows what a drive is, and which of its counters can be used
    Probe(probe::Args),
    /// Writes a drive's pages into a folder that stands for the drive
    Record(probe::Record),
    /// Prints systemd units that take a sample at intervals; installs nothing
    Timer(timer::Args),
    /// Prints Prometheus alerting rules on what `report --prometheus` exports
    Alerts,
}

/// Does what is asked.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.verb {
        Verb::Watch(args) => watch::run(&args),
        Verb::Report(args) => report::run(&args),
        Verb::Probe(args) => probe::run(&args),
        Verb::Record(args) => probe::record(&args),
        Verb::Timer(args) => timer::run(&args),
        Verb::Alerts => {
            std::io::stdout().write_all(saiga_waf::report::ALERTS.as_bytes())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The sample file that was named, or this user's.
fn sample_file(named: Option<&PathBuf>) -> anyhow::Result<PathBuf> {
    if let Some(named) = named {
        return Ok(named.clone());
    }
    if rustix::process::geteuid().is_root() {
        return Ok(PathBuf::from(FILE_OF_ROOT));
    }
    let state = std::env::var_os("XDG_STATE_HOME").filter(|it| !it.is_empty());
    let state = state.map(PathBuf::from).or_else(|| {
        let home = std::env::var_os("HOME").filter(|it| !it.is_empty())?;
        Some(PathBuf::from(home).join(".local/state"))
    });
    let state = state.context("neither HOME nor XDG_STATE_HOME is set: name a --file")?;
    Ok(state.join("saiga/waf.db"))
}

const FILE_OF_ROOT: &str = "/var/lib/saiga/waf.db";

/// A drive as people name it: `nvme0` is /dev/nvme0, as for calculate_wa.sh; `nvme-copy` is a folder here.
fn drive_path(word: &str) -> Result<PathBuf, std::convert::Infallible> {
    Ok(if is_device_name(word) {
        PathBuf::from("/dev").join(word)
    } else {
        PathBuf::from(word)
    })
}

/// `nvme0`, a namespace of it, `nvme0n1`, or a part of that, `nvme0n1p2`.
fn is_device_name(word: &str) -> bool {
    let Some(mut rest) = word.strip_prefix("nvme").and_then(after_number) else {
        return false;
    };
    for letter in ["n", "p"] {
        if rest.is_empty() {
            break;
        }
        let Some(next) = rest.strip_prefix(letter).and_then(after_number) else {
            return false;
        };
        rest = next;
    }
    rest.is_empty()
}

/// What follows a number of one digit or more.
fn after_number(word: &str) -> Option<&str> {
    let rest = word.trim_start_matches(|letter: char| letter.is_ascii_digit());
    (rest.len() < word.len()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_a_device_when_the_kernel_names_devices_so() {
        for word in ["nvme0", "nvme12n3", "nvme0n1p15"] {
            assert_eq!(drive_path(word), Ok(PathBuf::from("/dev").join(word)));
        }
        for word in [
            "nvme",
            "nvme-copy",
            "nvme0-copy",
            "nvme0p1",
            "nvme0n",
            "nvme0n1p1x",
            "nvmen1",
            "./nvme0",
            "/dev/nvme0",
            "sda",
        ] {
            assert_eq!(drive_path(word), Ok(PathBuf::from(word)));
        }
    }
}
