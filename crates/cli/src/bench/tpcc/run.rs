//! `saiga bench tpcc run`: runs the terminals and measures their transactions.
//!
//! Several databases are run at the same time, as one experiment. Exit status 1 if a check fails, 2
//! if the run could not start or ended early; the measured part is reported in that case, too.

mod beside;
mod finish;
mod live;
mod merge;
mod options;
mod prepare;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use saiga_process::interrupt::Interrupt;
use saiga_tpcc::driver::sample::Sample;
use saiga_tpcc::driver::{DeliveryResult, Observer, Progress};
use saiga_tpcc::results::files::SampleFiles;
use saiga_tpcc::results::several;
use saiga_tpcc::target::Target;

use super::target::Targets;
use crate::compare::raise_descriptor_limit;
use crate::exit;
use crate::host::{Host, HostSamples};
use beside::CounterSources;
use finish::Finished;
use live::ProgressDisplay;
pub(super) use merge::Args as MergeArgs;
pub(super) use merge::run as merge_parts;
pub(super) use options::Options;
use prepare::Prepared;

/// Options of `saiga bench tpcc run`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    targets: Targets,
    #[command(flatten)]
    options: Options,
}

/// Time between the connection of the last terminal and the start.
const START_DELAY: Duration = Duration::from_millis(100);
/// Interval of the checks for Ctrl-C before a start in the future.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let targets = args.targets.all()?;
    let interrupt = Interrupt::on_signals().context("cannot watch for Ctrl-C")?;
    let all_hold = run_all(&targets, &args.options, &interrupt)?;
    Ok(if all_hold {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(exit::NO)
    })
}

/// Runs the given databases; returns whether all checks hold.
pub(super) fn run_all(
    targets: &[Target],
    options: &Options,
    interrupt: &Interrupt,
) -> anyhow::Result<bool> {
    let mut own = Vec::new();
    for target in targets {
        let options = options.with_defaults_of(&target.props)?;
        options.check(targets.len())?;
        own.push(options);
    }
    raise_descriptor_limit();
    let mut prepared = Vec::new();
    for (index, (target, options)) in targets.iter().zip(&own).enumerate() {
        let out = options.out_of(index, targets.len());
        let one = Prepared::new(target, options, out, interrupt);
        prepared.push(one.with_context(|| target.name())?);
    }
    let mut watched = CounterSources::default();
    targets.iter().for_each(|target| watched.add(target));
    own.iter().for_each(|options| watched.add_named(options));
    let start_at = own.iter().find_map(|options| options.start_at);
    let started = await_start(start_at, interrupt)?;
    let ready = prepare::claim_all(prepared, &own, started.local_s())?;
    let (mut finished, seen) = measure(ready, watched, &own, started, interrupt);
    let mut measured: Vec<_> = finished.iter_mut().map(|one| &mut one.measured).collect();
    several::share_cpu(&mut measured);
    conclude_all(finished, &own, seen, options.json, interrupt)
}

/// Writes and prints the result of each database, also if others failed. The host's figures go to
/// the first database.
fn conclude_all(
    finished: Vec<Finished<'_>>,
    own: &[Options],
    mut seen: Option<HostSamples>,
    as_json: bool,
    interrupt: &Interrupt,
) -> anyhow::Result<bool> {
    let mut all_hold = true;
    let mut problems = Vec::new();
    let mut records = Vec::new();
    for (one, options) in finished.into_iter().zip(own) {
        let name = one.target.name();
        match one.conclude(options, interrupt, seen.take()) {
            Ok(record) => {
                all_hold &= record.all_checks_hold();
                problems.extend(record.early_end().map(|why| format!("{name}: {why}")));
                records.push(record);
            }
            Err(error) => problems.push(format!("{name}: {error:#}")),
        }
    }
    if let Some(sum) = several::sum(&records).filter(|_| !as_json) {
        writeln!(std::io::stdout(), "{sum}")?;
    }
    match problems.split_last() {
        None => Ok(all_hold),
        Some((last, others)) => {
            others.iter().for_each(|problem| exit::say(problem));
            bail!("{last}")
        }
    }
}

/// The instant of the start on each clock.
#[derive(Debug, Clone, Copy)]
struct Start {
    at: Instant,
    since_1970: Duration,
}

impl Start {
    /// In seconds of local time.
    fn local_s(self) -> i64 {
        let unix_s = i64::try_from(self.since_1970.as_secs()).unwrap_or(i64::MAX);
        unix_s.saturating_add(crate::local_time::offset_s(unix_s))
    }
}

/// Waits for the start: a moment from now, or the instant that all hosts were given.
fn await_start(start_at: Option<SystemTime>, interrupt: &Interrupt) -> anyhow::Result<Start> {
    let now = SystemTime::now();
    let at = match start_at {
        None => now + START_DELAY,
        Some(at) => at,
    };
    let Ok(ahead) = at.duration_since(now) else {
        let late = now.duration_since(at).unwrap_or_default();
        bail!(
            "--start-at was {:.1} s ago when all terminals were connected; give a later time",
            late.as_secs_f64()
        );
    };
    let start = Instant::now() + ahead;
    if ahead > START_DELAY {
        exit::say(&format!(
            "all terminals are connected; starting in {:.1} s",
            ahead.as_secs_f64()
        ));
    }
    // Result directories are claimed just before the start, so that an interrupted wait leaves
    // none.
    while start.saturating_duration_since(Instant::now()) > START_DELAY {
        if interrupt.raised() {
            bail!("interrupted before the start");
        }
        thread::park_timeout(CHECK_INTERVAL);
    }
    let since_1970 = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Start {
        at: start,
        since_1970,
    })
}

/// Measures all databases, with one thread for each to collect results. The host is watched once;
/// its figures go to the record of the first database.
fn measure<'t, 'o>(
    ready: Vec<prepare::Ready<'t>>,
    watched: CounterSources,
    options: &'o [Options],
    start: Start,
    interrupt: &Interrupt,
) -> (Vec<Finished<'t>>, Option<HostSamples>) {
    let host = Arc::new(Host::default());
    let recording = watched.begin(&host, ready.first().and_then(prepare::Ready::folder));
    let names = ready.iter().map(prepare::Ready::name).collect();
    let is_drawn = options.iter().all(|options| !options.no_dashboard);
    let load_file = options
        .iter()
        .find_map(|options| options.load_file.as_deref());
    let display = ProgressDisplay::new(names, &host, is_drawn, load_file);
    let finished = thread::scope(|scope| {
        let spawn = |(index, (one, options)): (usize, (prepare::Ready<'t>, &'o Options))| {
            let display = &display;
            scope.spawn(move || {
                let observer = RunObserver {
                    index,
                    display,
                    interrupt,
                    streams: None,
                };
                let finished = one.run(options, start, observer);
                display.over(index);
                finished
            })
        };
        let threads: Vec<_> = ready
            .into_iter()
            .zip(options)
            .enumerate()
            .map(spawn)
            .collect();
        let join = |thread: thread::ScopedJoinHandle<'_, Finished<'t>>| {
            // A panic aborts the process, so there is always a result.
            thread
                .join()
                .unwrap_or_else(|_| unreachable!("a thread that panics ends the process"))
        };
        threads.into_iter().map(join).collect()
    });
    display.finish();
    (finished, beside::end(recording, start.at))
}

/// Receives the events of one database under load.
struct RunObserver<'a> {
    index: usize,
    display: &'a ProgressDisplay,
    interrupt: &'a Interrupt,
    streams: Option<SampleFiles>,
}

impl Observer for RunObserver<'_> {
    fn is_interrupted(&self) -> bool {
        self.interrupt.raised()
    }

    fn on_samples(&mut self, samples: &[Sample], delivered: &[DeliveryResult]) {
        if let Some(streams) = &mut self.streams {
            streams.append(samples, delivered);
        }
    }

    fn on_second(&mut self, progress: &Progress) {
        self.display.update(self.index, progress);
    }
}
