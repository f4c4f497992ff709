//! `saiga waf watch`: a sample of each drive, then one after each interval until a signal.
//!
//! An error at the first sample ends the verb. A later one (an unplugged drive, a full disk) is
//! reported once, as is its end. Output that cannot be printed does not stop the samples. Each
//! sample is on the disk before it is printed, so that none is lost when the process is killed.

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use saiga_process::interrupt::Interrupt;
use saiga_waf::source::Source;
use saiga_waf::{WatchError, Watcher, report, series};

use crate::exit;

/// Options of `saiga waf watch`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Ends on SIGTERM or Ctrl-C with status 0. Reading a drive needs root. With --once, \
the exit status is 2 when no sample could be taken of a drive.")]
pub(super) struct Args {
    /// Drives: /dev/nvme0, a namespace (/dev/nvme0n1), or a directory written by `saiga waf record`
    #[arg(value_name = "DEVICE", required = true, value_parser = super::drive_path)]
    drives: Vec<PathBuf>,
    /// Interval between samples: 30s, 10min, 1h
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = interval)]
    every: Duration,
    /// Keep samples in this file [default: /var/lib/saiga/waf.db for root, else
    /// ~/.local/state/saiga/waf.db]
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// Use only this source of counters: fdp, ocp, huawei, intel, endurance
    #[arg(long, value_name = "NAME")]
    source: Option<Source>,
    /// Take one sample and exit, for a timer
    #[arg(long)]
    once: bool,
}

/// Parses an interval between 1 s and 366 days.
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if time < Duration::from_secs(1) {
        return Err("the interval must be at least 1s".to_owned());
    }
    if time > Duration::from_secs(366 * 86_400) {
        return Err("the interval must be at most 366days".to_owned());
    }
    Ok(time)
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::on_signals().context("cannot set up signal handling")?;
    let file = super::sample_file(args.file.as_ref())?;
    if args.file.is_none() {
        make_folder(&file)?;
    }
    let mut watcher = Watcher::new(&file, args.source);
    let mut errors = CurrentErrors::default();
    let mut lines = Output { are_lost: false };
    let mut next = Instant::now();
    let mut is_first = true;
    loop {
        let results = watcher.round(&args.drives, &|| interrupt.raised());
        // A signal may arrive before all drives were read.
        let mut failed = results.len() < args.drives.len();
        for (path, result) in args.drives.iter().zip(results) {
            match result {
                Ok(kept) => {
                    errors.over(path);
                    let since = kept
                        .before
                        .as_ref()
                        .map(|before| series::between(before, &kept.sample));
                    failed |= !lines.print(&report::line(&kept.sample, since.as_ref()))?;
                }
                // An error that the user can correct ends the verb with exit status 2.
                Err(error) if is_first && !args.once && !error.is_temporary() => {
                    return Err(error.into());
                }
                Err(error) => {
                    failed = true;
                    errors.say(path, &error, args.once);
                }
            }
        }
        if args.once {
            return Ok(ExitCode::from(if failed { exit::COULD_NOT } else { 0 }));
        }
        is_first = false;
        // Relative to the start, so that intervals do not drift. Missed samples are skipped.
        next += args.every;
        let now = Instant::now();
        while next <= now {
            next += args.every;
        }
        if interrupt
            .wait(next - now)
            .context("cannot wait for the next sample")?
        {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

fn make_folder(file: &Path) -> anyhow::Result<()> {
    let Some(folder) = file.parent() else {
        return Ok(());
    };
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(folder);
    made.with_context(|| format!("cannot make {}; give another --file", folder.display()))
}

/// Output of the samples to stdout. A full disk there does not stop the samples.
#[derive(Debug)]
struct Output {
    are_lost: bool,
}

impl Output {
    /// Prints a line and returns whether that succeeded. A failure is reported once.
    ///
    /// # Errors
    /// The reader has closed the pipe.
    fn print(&mut self, line: &str) -> io::Result<bool> {
        let mut stdout = io::stdout().lock();
        let printed = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
        match printed {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(error),
            Err(error) => {
                if !self.are_lost {
                    exit::say(&format!(
                        "cannot print samples: {error}; they are still written to the file"
                    ));
                }
                self.are_lost = true;
                Ok(false)
            }
            Ok(()) => {
                self.are_lost = false;
                Ok(true)
            }
        }
    }
}

/// The current error of each drive, so that each error is reported once.
#[derive(Debug, Default)]
struct CurrentErrors(BTreeMap<PathBuf, String>);

impl CurrentErrors {
    fn say(&mut self, path: &Path, error: &WatchError, is_last: bool) {
        let text = error.to_string();
        if self.0.get(path) == Some(&text) {
            return;
        }
        let outlook = if is_last {
            ""
        } else {
            "; trying again at each interval"
        };
        exit::say(&format!("no sample of {}: {text}{outlook}", path.display()));
        self.0.insert(path.to_owned(), text);
    }

    fn over(&mut self, path: &Path) {
        if self.0.remove(path).is_some() {
            exit::say(&format!("{} can be read again", path.display()));
        }
    }
}
