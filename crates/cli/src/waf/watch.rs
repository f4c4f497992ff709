//! `saiga waf watch`: a sample of each drive, then one after each interval until a signal.
//!
//! What is wrong at the first look ends it; what goes wrong later (a drive that is unplugged, a full disk) is said once,
//! and so is that it is over; lines that cannot be printed cost no sample. Killed at any moment, it loses nothing: each sample is on the disk before it is reported.

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use saiga_experiment::interrupt::Interrupt;
use saiga_waf::source::Source;
use saiga_waf::{WatchError, Watcher, report, series};

use crate::exit;

/// Options of `saiga waf watch`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Ends at once on SIGTERM or Ctrl-C, with status 0. Asking a drive needs root. With --once, the exit \
status is 2 when a drive gave no sample."
)]
pub(super) struct Args {
    /// Drives: /dev/nvme0, a namespace of one (/dev/nvme0n1), or the folder of a recorded one
    #[arg(value_name = "DEVICE", required = true, value_parser = super::drive_path)]
    drives: Vec<PathBuf>,
    /// Time from one sample to the next: 30s, 10min, 1h
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = interval)]
    every: Duration,
    /// Keep samples in this file [default: /var/lib/saiga/waf.db for root, else ~/.local/state/saiga/waf.db]
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// Use this source of counters and no other: fdp, ocp, huawei, intel, endurance
    #[arg(long, value_name = "NAME")]
    source: Option<Source>,
    /// Take one sample and end, for a timer
    #[arg(long)]
    once: bool,
}

/// A length of time that is worth waiting for.
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if time < Duration::from_secs(1) {
        return Err("the shortest interval is 1s".to_owned());
    }
    if time > Duration::from_secs(366 * 86_400) {
        return Err("the longest interval is 366days".to_owned());
    }
    Ok(time)
}

/// Takes samples.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::on_signals().context("cannot watch for signals")?;
    let file = super::sample_file(args.file.as_ref())?;
    if args.file.is_none() {
        make_folder(&file)?;
    }
    let mut watcher = Watcher::new(&file, args.source);
    let mut troubles = Troubles::default();
    let mut lines = Lines { are_lost: false };
    let mut next = Instant::now();
    let mut is_first = true;
    loop {
        let results = watcher.round(&args.drives, &|| interrupt.raised());
        // A signal may have come before all were asked.
        let mut failed = results.len() < args.drives.len();
        for (path, result) in args.drives.iter().zip(results) {
            match result {
                Ok(kept) => {
                    troubles.over(path);
                    let since = kept
                        .before
                        .as_ref()
                        .map(|before| series::between(before, &kept.sample));
                    failed |= !lines.print(&report::line(&kept.sample, since.as_ref()))?;
                }
                // What the user can mend is an answer to the user, not to a log.
                Err(error) if is_first && !args.once && !error.is_temporary() => {
                    return Err(error.into());
                }
                Err(error) => {
                    failed = true;
                    troubles.say(path, &error, args.once);
                }
            }
        }
        if args.once {
            return Ok(ExitCode::from(if failed { exit::COULD_NOT } else { 0 }));
        }
        is_first = false;
        // From the beginning, not from the last sample: intervals do not drift. Missed ones are left out.
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
    made.with_context(|| format!("cannot make {}; name another --file", folder.display()))
}

/// What is printed of samples that are kept: where it goes may fill up, and that is not a reason to take none.
#[derive(Debug)]
struct Lines {
    are_lost: bool,
}

impl Lines {
    /// Whether the line was printed. That it was not is said once.
    ///
    /// # Errors
    /// Nobody reads them any more.
    fn print(&mut self, line: &str) -> io::Result<bool> {
        let mut stdout = io::stdout().lock();
        let printed = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
        match printed {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(error),
            Err(error) => {
                if !self.are_lost {
                    exit::say(&format!("cannot print samples: {error}; they are kept"));
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

/// What is wrong with each drive at the moment, so that it is said once and not each second.
#[derive(Debug, Default)]
struct Troubles(BTreeMap<PathBuf, String>);

impl Troubles {
    fn say(&mut self, path: &Path, error: &WatchError, is_last: bool) {
        let text = error.to_string();
        if self.0.get(path) == Some(&text) {
            return;
        }
        let outlook = if is_last {
            ""
        } else {
            "; tried again at each interval"
        };
        exit::say(&format!("no sample of {}: {text}{outlook}", path.display()));
        self.0.insert(path.to_owned(), text);
    }

    fn over(&mut self, path: &Path) {
        if self.0.remove(path).is_some() {
            exit::say(&format!("samples of {} again", path.display()));
        }
    }
}
