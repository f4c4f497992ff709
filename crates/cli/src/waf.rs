//! `saiga waf watch|report|probe|record|timer|alerts`: write amplification from drive counters.
//!
//! The crate `saiga-waf` reads the counters and computes the factors; this module has the files,
//! the intervals and the output.

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
    /// Writes samples of drive counters to a file, once or at intervals
    Watch(watch::Args),
    /// Shows the write amplification of each interval, and in total
    Report(report::Args),
    /// Shows the identity of a drive, and which of its counters are usable
    Probe(probe::Args),
    /// Copies the log pages of a drive to a directory that other verbs accept as a drive
    Record(probe::Record),
    /// Prints systemd units that take a sample at intervals; installs nothing
    Timer(timer::Args),
    /// Prints Prometheus alerting rules for the metrics of `report --prometheus`
    Alerts,
}

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

/// The given sample file, or the default one of this user.
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
    let state = state.context("neither HOME nor XDG_STATE_HOME is set; give a --file")?;
    Ok(state.join("saiga/waf.db"))
}

const FILE_OF_ROOT: &str = "/var/lib/saiga/waf.db";

/// Resolves a drive name: `nvme0` is /dev/nvme0, as for calculate_wa.sh; `nvme-copy` is a
/// directory.
fn drive_path(word: &str) -> Result<PathBuf, std::convert::Infallible> {
    Ok(if is_device_name(word) {
        PathBuf::from("/dev").join(word)
    } else {
        PathBuf::from(word)
    })
}

/// Whether `word` is a controller (`nvme0`), a namespace (`nvme0n1`) or a partition (`nvme0n1p2`).
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

/// The text after a number of at least one digit.
fn after_number(word: &str) -> Option<&str> {
    let rest = word.trim_start_matches(|letter: char| letter.is_ascii_digit());
    (rest.len() < word.len()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_device_names_are_recognised() {
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
