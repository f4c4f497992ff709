//! `saiga bench tpcc run`: terminals that perform transactions, measured.
//!
//! Several props files are run at the same time, as one experiment. Exit 1 when a check fails; 2
//! when the run could not be made, or was broken off: then with the result of what was measured.

mod beside;
mod finish;
mod live;
mod merge;
mod options;
mod prepare;
mod status;

use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use saiga_experiment::interrupt::Interrupt;
use saiga_tpcc::driver::sample::Sample;
use saiga_tpcc::driver::{DeliveryResult, Observer, Progress};
use saiga_tpcc::results::Record;
use saiga_tpcc::results::files::SampleFiles;

use super::target::{Target, Targets};
use crate::compare::raise_descriptor_limit;
use crate::exit;
use crate::host::{Host, Seen};
use beside::Watched;
use finish::Finished;
use live::Board;
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

/// Between the moment when all are connected and the start.
const BREATH: Duration = Duration::from_millis(100);
/// How long a start that lies ahead is waited for between two looks at Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

/// Runs all databases at the same time.
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

/// The same for a caller who has the databases; whether all checks hold.
pub(super) fn run_all(
    targets: &[Target],
    options: &Options,
    interrupt: &Interrupt,
) -> anyhow::Result<bool> {
    let mut own = Vec::new();
    for target in targets {
        let options = options.over_those_of(&target.props)?;
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
    let mut watched = Watched::default();
    targets.iter().for_each(|target| watched.add(target));
    own.iter().for_each(|options| watched.add_named(options));
    let start_at = own.iter().find_map(|options| options.start_at);
    let started = await_start(start_at, interrupt)?;
    let ready = prepare::claim_all(prepared, &own, started.local_s())?;
    let (mut finished, seen) = measure(ready, watched, &own, started, interrupt);
    finish::share_cpu(&mut finished);
    conclude_all(finished, &own, seen, options.json, interrupt)
}

/// Writes and prints what each database has measured, whatever is wrong with the others; what was
/// `seen` of the host belongs to the first.
fn conclude_all(
    finished: Vec<Finished<'_>>,
    own: &[Options],
    mut seen: Option<Seen>,
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
                problems.extend(reason(&record).map(|why| format!("{name}: {why}")));
                records.push(record);
            }
            Err(error) => problems.push(format!("{name}: {error:#}")),
        }
    }
    finish::print_sum(&records, as_json)?;
    match problems.split_last() {
        None => Ok(all_hold),
        Some((last, others)) => {
            others.iter().for_each(|problem| exit::say(problem));
            bail!("{last}")
        }
    }
}

/// Why a run was broken off, if it was.
fn reason(record: &Record) -> Option<String> {
    let first = record
        .errors
        .first()
        .map(|(text, count)| format!("{count} times: {text}"));
    let first = first.unwrap_or_else(|| "no error was seen".to_owned());
    match record.end.as_str() {
        "done" => None,
        "interrupted" => {
            Some("interrupted; the figures are of what was measured until then".to_owned())
        }
        "gave up" if record.lost_connections == 0 => Some(format!(
            "given up, the server answered nobody for too long (--give-up) though no connection was lost: \
             it stands still, or waits for a lock or for room on a disk; {first}"
        )),
        "gave up" => Some(format!(
            "given up, the server did not come back in time (--give-up); {first}"
        )),
        _ => Some(format!("called off, no transaction succeeded; {first}")),
    }
}

/// The instant of the start on all clocks.
#[derive(Debug, Clone, Copy)]
struct Start {
    at: Instant,
    since_1970: Duration,
}

impl Start {
    /// On the clock on the wall.
    fn local_s(self) -> i64 {
        let unix_s = i64::try_from(self.since_1970.as_secs()).unwrap_or(i64::MAX);
        unix_s.saturating_add(crate::local_time::offset_s(unix_s))
    }
}

/// When all begin: in a moment, or at the time that all hosts have been given.
fn await_start(start_at: Option<SystemTime>, interrupt: &Interrupt) -> anyhow::Result<Start> {
    let now = SystemTime::now();
    let at = match start_at {
        None => now + BREATH,
        Some(at) => at,
    };
    let Ok(ahead) = at.duration_since(now) else {
        let late = now.duration_since(at).unwrap_or_default();
        bail!(
            "--start-at was {:.1} s ago when all terminals were connected; name a later instant",
            late.as_secs_f64()
        );
    };
    let start = Instant::now() + ahead;
    if ahead > BREATH {
        exit::say(&format!(
            "all connected; start in {:.1} s",
            ahead.as_secs_f64()
        ));
    }
    // Directories are claimed a moment before the start, so that one broken off leaves none.
    while start.saturating_duration_since(Instant::now()) > BREATH {
        if interrupt.raised() {
            bail!("interrupted before the start");
        }
        thread::park_timeout(LOOK);
    }
    let since_1970 = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Start {
        at: start,
        since_1970,
    })
}

/// One thread for each database keeps its books; the host is watched for all of them, and what it
/// did is of the first one's record.
fn measure<'t, 'o>(
    ready: Vec<prepare::Ready<'t>>,
    watched: Watched,
    options: &'o [Options],
    start: Start,
    interrupt: &Interrupt,
) -> (Vec<Finished<'t>>, Option<Seen>) {
    let host = Arc::new(Host::default());
    let recording = watched.begin(&host, ready.first().and_then(prepare::Ready::folder));
    let names = ready.iter().map(prepare::Ready::name).collect();
    let is_drawn = options.iter().all(|options| !options.no_dashboard);
    let load_file = options
        .iter()
        .find_map(|options| options.load_file.as_deref());
    let board = Board::new(names, &host, is_drawn, load_file);
    let finished = thread::scope(|scope| {
        let spawn = |(index, (one, options)): (usize, (prepare::Ready<'t>, &'o Options))| {
            let board = &board;
            scope.spawn(move || {
                let looker = Looker {
                    index,
                    board,
                    interrupt,
                    streams: None,
                };
                let finished = one.run(options, start, looker);
                board.over(index);
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
    board.finish();
    (finished, beside::end(recording, start.at))
}

/// Looks on while one database is under load.
struct Looker<'a> {
    index: usize,
    board: &'a Board,
    interrupt: &'a Interrupt,
    streams: Option<SampleFiles>,
}

impl Observer for Looker<'_> {
    fn is_interrupted(&self) -> bool {
        self.interrupt.raised()
    }

    fn on_samples(&mut self, samples: &[Sample], delivered: &[DeliveryResult]) {
        if let Some(streams) = &mut self.streams {
            streams.append(samples, delivered);
        }
    }

    fn on_second(&mut self, progress: &Progress) {
        self.board.tell(self.index, progress);
    }
}
