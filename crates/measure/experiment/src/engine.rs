//! Runs a plan: calibrates, visits cells, rejects and repeats, keeps every run.
//!
//! A visit in which a run is rejected is repeated as a whole, so that runs of one pair stay
//! adjacent in time: after all others, when what disturbed it may be over; at most
//! [`MAX_REPEATS`] times, and all repeats together at most half of the plan. An arm that
//! failed three times in a row in a cell is given up there.
//!
//! Deliberately absent: conclusions (`analysis`), and anything written to disk.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::time::{Duration, SystemTime};

use crate::interrupt::Interrupt;
use crate::plan::{Cell, Plan, RunSize, Visit};
use crate::process::{Child, CommandLine};
use crate::result::Run;
use crate::workload::{Conditions, Failure, Load, Measured, Target, Workload};

/// How often one visit is repeated before its last attempt stands.
pub const MAX_REPEATS: u32 = 3;
/// How the reason of a run begins whose partner was rejected.
pub const REPEATED: &str = "repeated because";
/// Failures in a row after which an arm is given up in a cell.
const MAX_FAILURES: u32 = 3;
/// Runs in which an arm's pace in a cell is found out, at most.
const MAX_CALIBRATIONS: u32 = 4;
/// What a run may take beyond several times its planned length.
const RUN_GRACE: Duration = Duration::from_secs(15);
/// The accounting of strangers' CPU time is this coarse: a tick and a half per core.
const FOREIGN_RESOLUTION_S: f64 = 0.03;
/// Most operations in one run: redis-benchmark counts in an `int`.
const MAX_OPERATIONS: u64 = 2_000_000_000;

/// What happens, for whoever shows progress.
#[derive(Debug)]
pub enum Event<'a> {
    /// The order of everything is known.
    Planned {
        /// Runs, without calibrations and repeats.
        runs: usize,
    },
    /// A run begins.
    Running {
        /// Its cell.
        cell: &'a str,
        /// Its arm.
        arm: &'a str,
        /// Its pair.
        pair: u32,
        /// Whether it only finds out how many operations to run.
        calibrating: bool,
    },
    /// A visit is over.
    Visited {
        /// Planned runs that are done.
        runs_done: usize,
    },
    /// A run does not count.
    Rejected {
        /// It, with its reason.
        run: &'a Run,
        /// Whether its visit is repeated.
        repeated: bool,
    },
    /// An arm failed too often in a cell.
    GivenUp {
        /// The cell.
        cell: &'a str,
        /// The arm.
        arm: &'a str,
        /// How it failed last.
        reason: &'a str,
    },
}

/// What a plan brought.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Every run in order of execution.
    pub runs: Vec<Run>,
    /// Why it ended before the plan was done.
    pub stopped: Option<String>,
    /// Cell, arm and reason of each arm that was given up.
    pub given_up: Vec<(String, String, String)>,
}

/// Runs `plan` and reports to `progress`.
///
/// # Errors
/// The failure that made even the first run impossible; nothing is left running.
pub fn execute<W: Workload>(
    workload: &W,
    plan: &Plan<W::Load>,
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(Event<'_>),
) -> Result<Outcome, Failure> {
    let names: Vec<String> = workload.arms().into_iter().map(|arm| arm.name).collect();
    let visits = plan.visits(names.len());
    progress(Event::Planned {
        runs: visits.len() * names.len(),
    });
    let mut engine = Engine {
        workload,
        plan,
        interrupt,
        progress,
        repeats_left: visits.len().div_ceil(2),
        names,
        operations: BTreeMap::new(),
        failures: BTreeMap::new(),
        broken: BTreeSet::new(),
        outcome: Outcome::default(),
    };
    let mut queue: VecDeque<(Visit, u32)> = visits.into_iter().map(|visit| (visit, 0)).collect();
    let mut runs_done = 0;
    while let Some((visit, attempt)) = queue.pop_front() {
        match engine.visit(&visit, attempt) {
            Ok(Visited::Repeat) => queue.push_back((visit, attempt + 1)),
            Ok(Visited::Stands) => runs_done += engine.names.len(),
            // What was measured stays, whatever ended the experiment.
            Err(failure @ Failure::Impossible(_)) if engine.outcome.runs.is_empty() => {
                return Err(failure);
            }
            Err(failure) => {
                engine.outcome.stopped = Some(failure.to_string());
                break;
            }
        }
        (engine.progress)(Event::Visited { runs_done });
    }
    Ok(engine.outcome)
}

/// What became of one attempt at a visit.
enum Visited {
    /// Its runs stand, rejected or not.
    Stands,
    /// It comes again later.
    Repeat,
}

struct Engine<'a, W: Workload> {
    workload: &'a W,
    plan: &'a Plan<W::Load>,
    interrupt: &'a Interrupt,
    progress: &'a mut dyn FnMut(Event<'_>),
    names: Vec<String>,
    repeats_left: usize,
    /// Calibrated operations by calibration key and arm.
    operations: BTreeMap<(String, usize), u64>,
    /// Failures in a row by cell and arm.
    failures: BTreeMap<(usize, usize), u32>,
    broken: BTreeSet<(usize, usize)>,
    outcome: Outcome,
}

impl<W: Workload> Engine<'_, W> {
    fn visit(&mut self, visit: &Visit, attempt: u32) -> Result<Visited, Failure> {
        for &arm in &visit.order {
            self.calibrate(visit.cell, arm, visit.pair)?;
        }
        let mut runs = self.attempt(visit)?;
        let given_up = |run: &&Run| {
            let arm = self.names.iter().position(|name| *name == run.arm);
            arm.is_none_or(|arm| self.broken.contains(&(visit.cell, arm)))
        };
        let mut causes = runs
            .iter()
            .filter(|run| run.rejected.is_some() && !given_up(run));
        let cause = causes.next().map(|run| run.arm.clone());
        let repeated = cause.is_some() && attempt < MAX_REPEATS && self.repeats_left > 0;
        for run in runs.iter().filter(|run| run.rejected.is_some()) {
            (self.progress)(Event::Rejected { run, repeated });
        }
        if let Some(cause) = cause.filter(|_| repeated) {
            self.repeats_left -= 1;
            for run in runs.iter_mut().filter(|run| run.rejected.is_none()) {
                run.rejected = Some(format!("{REPEATED} the run of {cause} was rejected"));
            }
        }
        self.outcome.runs.extend(runs);
        Ok(if repeated {
            Visited::Repeat
        } else {
            Visited::Stands
        })
    }

    /// Runs every arm once; an interrupt keeps what was measured before it.
    fn attempt(&mut self, visit: &Visit) -> Result<Vec<Run>, Failure> {
        let mut runs = Vec::new();
        let arms = visit
            .order
            .iter()
            .filter(|&&arm| !self.broken.contains(&(visit.cell, arm)));
        for (position, arm) in arms.copied().collect::<Vec<_>>().into_iter().enumerate() {
            match self.one_run(visit, position, arm) {
                Ok(run) => runs.push(run),
                Err(Failure::Interrupted) => {
                    self.outcome.runs.extend(runs);
                    return Err(Failure::Interrupted);
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(runs)
    }

    fn one_run(&mut self, visit: &Visit, position: usize, arm: usize) -> Result<Run, Failure> {
        let plan = self.plan;
        let cell = &plan.cells[visit.cell];
        let started = now();
        let mut run = Run {
            cell: cell.id.clone(),
            arm: self.names[arm].clone(),
            pair: visit.pair,
            position: u32::try_from(position).unwrap_or(u32::MAX),
            started,
            seconds: 0.0,
            metrics: BTreeMap::new(),
            foreign_cpu_s: 0.0,
            rejected: None,
        };
        self.announce(cell, arm, visit.pair, false);
        let operations = self.operations_of(cell, arm);
        match measure(
            self.workload,
            arm,
            cell,
            operations,
            self.limit(),
            self.interrupt,
        ) {
            Ok(measured) => {
                match &measured.invalid {
                    Some(reason) => self.count_failure(visit.cell, arm, reason),
                    None => drop(self.failures.remove(&(visit.cell, arm))),
                }
                run.rejected = self.judge(&measured);
                run.seconds = measured.seconds;
                run.metrics = measured.metrics;
                run.foreign_cpu_s = measured.foreign_cpu_s;
            }
            Err(Failure::Run { reason }) => {
                self.count_failure(visit.cell, arm, &reason);
                run.rejected = Some(reason);
            }
            Err(failure) => return Err(failure),
        }
        Ok(run)
    }

    /// Why a run that ended cannot count.
    fn judge(&self, measured: &Measured) -> Option<String> {
        let allowed_s = self.plan.max_foreign_cores * measured.window_s + FOREIGN_RESOLUTION_S;
        if measured.invalid.is_some() {
            return measured.invalid.clone();
        }
        (measured.foreign_cpu_s > allowed_s).then(|| {
            format!(
                "other processes used {:.2} s of CPU in {:.2} s, more than {:.2} of a core",
                measured.foreign_cpu_s, measured.window_s, self.plan.max_foreign_cores
            )
        })
    }

    /// Finds out how many operations fill a run, once for each arm and kind of load.
    fn calibrate(&mut self, cell_index: usize, arm: usize, pair: u32) -> Result<(), Failure> {
        let plan = self.plan;
        let RunSize::Lasting(length) = plan.size else {
            return Ok(());
        };
        let cell = &plan.cells[cell_index];
        if !cell.load.calibrates() {
            return Ok(());
        }
        let key = self.calibration_key(cell, arm);
        if self.operations.contains_key(&key) || self.broken.contains(&(cell_index, arm)) {
            return Ok(());
        }
        let wanted_s = length.as_secs_f64() * cell.load.length_factor();
        let least = cell.load.least_operations();
        let mut operations = cell.load.first_guess().max(least);
        for _ in 0..MAX_CALIBRATIONS {
            self.announce(cell, arm, pair, true);
            let limit = self.limit();
            match measure(self.workload, arm, cell, operations, limit, self.interrupt) {
                Ok(Measured { seconds, .. }) => {
                    operations = scaled(operations, wanted_s / seconds.max(1e-4)).max(least);
                    if seconds >= wanted_s / 2.0 {
                        break;
                    }
                }
                Err(Failure::Run { reason }) => self.count_failure(cell_index, arm, &reason),
                Err(failure) => return Err(failure),
            }
        }
        self.operations.insert(key, operations);
        Ok(())
    }

    fn calibration_key(&self, cell: &Cell<W::Load>, arm: usize) -> (String, usize) {
        let load = cell.load.calibration_key();
        (
            format!("{load} {} {}", cell.placement.name(), cell.hog.name()),
            arm,
        )
    }

    fn operations_of(&self, cell: &Cell<W::Load>, arm: usize) -> u64 {
        match self.plan.size {
            RunSize::Operations(operations) => operations,
            RunSize::Timed(_) | RunSize::Lasting(_) => {
                let known = self
                    .operations
                    .get(&self.calibration_key(cell, arm))
                    .copied();
                known.unwrap_or_else(|| cell.load.first_guess())
            }
        }
    }

    fn limit(&self) -> Duration {
        match self.plan.size {
            RunSize::Lasting(length) | RunSize::Timed(length) => RUN_GRACE + length * 30,
            RunSize::Operations(_) => RUN_GRACE * 40,
        }
    }

    fn count_failure(&mut self, cell: usize, arm: usize, reason: &str) {
        let failures = self.failures.entry((cell, arm)).or_insert(0);
        *failures += 1;
        if *failures >= MAX_FAILURES && self.broken.insert((cell, arm)) {
            let (cell, arm) = (&self.plan.cells[cell].id, &self.names[arm]);
            (self.progress)(Event::GivenUp { cell, arm, reason });
            self.outcome
                .given_up
                .push((cell.clone(), arm.clone(), reason.to_owned()));
        }
    }

    fn announce(&mut self, cell: &Cell<W::Load>, arm: usize, pair: u32, calibrating: bool) {
        let (cell, arm) = (cell.id.as_str(), self.names[arm].as_str());
        (self.progress)(Event::Running {
            cell,
            arm,
            pair,
            calibrating,
        });
    }
}

/// One run from the start of its servers to their end.
///
/// # Errors
/// [`Failure`]; nothing is left running.
pub fn measure<W: Workload>(
    workload: &W,
    arm: usize,
    cell: &Cell<W::Load>,
    operations: u64,
    limit: Duration,
    interrupt: &Interrupt,
) -> Result<Measured, Failure> {
    if interrupt.raised() {
        return Err(Failure::Interrupted);
    }
    let mut target = workload.prepare(arm, cell, interrupt)?;
    let hogs = start_hogs(&cell.hogged)?;
    let measured = target.run(
        operations,
        &Conditions {
            interrupt,
            hogs: &hogs,
            limit,
        },
    );
    drop(hogs);
    target.teardown()?;
    measured
}

/// This moment as RFC 3339 in UTC.
#[must_use]
pub fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

/// One endless loop on each of `cpus`; dropping them ends them.
fn start_hogs(cpus: &[usize]) -> Result<Vec<Child>, Failure> {
    let start = |&cpu: &usize| {
        let mut line = CommandLine::new("sh", ["-c", "while :; do :; done"]);
        line.cpus = vec![cpu];
        let null = || {
            File::options()
                .write(true)
                .open("/dev/null")
                .map_err(Failure::impossible)
        };
        line.spawn("dash", null()?, null()?)
            .map_err(Failure::impossible)
    };
    cpus.iter().map(start).collect()
}

/// `operations` times `factor`, at most thirty times as many.
fn scaled(operations: u64, factor: f64) -> u64 {
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let scaled = (operations as f64 * factor.clamp(0.01, 30.0)).round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and clamped right after"
    )]
    let scaled = scaled as u64;
    scaled.clamp(1, MAX_OPERATIONS)
}

#[cfg(test)]
mod tests;
