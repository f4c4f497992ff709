//! Runs a plan: calibrates, visits cells, rejects and repeats runs, and keeps every run.
//!
//! If a run is rejected, its whole visit is repeated, so that the runs of one pair stay adjacent in
//! time. Repeats come after all other visits, when the disturbance may be over. Each visit is
//! repeated at most [`MAX_REPEATS`] times, and all repeats together are at most half of the plan.
//! An arm that fails three times in a row in a cell is given up in this cell.
//!
//! With a campaign, runs that were already made are taken from its record (`campaign`).
//! Deliberately absent: conclusions (`analysis`).

mod calibration;
mod once;
mod rejection;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use crate::campaign::{Campaign, CampaignError};
use crate::observer::HostObserver;
use crate::plan::{Cell, Plan, RunSize, Visit};
use crate::result::{Arm, Run};
use crate::workload::{Failure, Load, Workload};
use saiga_process::interrupt::Interrupt;

use once::{ObservedRun, RunSettings, run_observed};

pub use once::measure;
pub use rejection::{OTHERS, STOLEN};

/// Maximum number of repeats of a visit; the last attempt is final.
pub const MAX_REPEATS: u32 = 3;
/// Prefix of the reason for rejecting a run because another run of its visit was rejected.
pub const REPEATED: &str = "repeated because";
/// Number of consecutive failures after which an arm is given up in a cell.
const MAX_FAILURES: u32 = 3;
/// Timeout of a run in addition to a multiple of its planned length.
const RUN_GRACE: Duration = Duration::from_secs(15);

/// Progress of an experiment.
#[derive(Debug)]
pub enum Event<'a> {
    /// The plan is complete; sent once, before the first run.
    Planned {
        /// Number of runs without calibrations and repeats.
        runs: usize,
    },
    Running {
        cell: &'a str,
        arm: &'a str,
        pair: u32,
        /// Whether the run is a calibration.
        calibrating: bool,
    },
    /// A run has ended that was not in the record; it may be rejected.
    Ran { run: &'a Run },
    /// A visit has ended.
    Visited {
        /// Number of planned runs that are done.
        runs_done: usize,
    },
    /// A run was rejected.
    Rejected {
        run: &'a Run,
        /// Whether the visit is repeated.
        repeated: bool,
    },
    /// An arm is given up in a cell.
    GivenUp {
        cell: &'a str,
        arm: &'a str,
        /// The reason of its last failure.
        reason: &'a str,
    },
}

/// The decision of a stopping rule after a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Run the next round.
    Continue,
    /// End the experiment.
    Stop,
}

/// Optional parts of an experiment.
#[derive(Default)]
pub struct Extras<'a> {
    /// The stopping rule, called after each round with all runs so far.
    pub decide: Option<&'a mut dyn FnMut(&Outcome) -> Decision>,
    /// Whether the stopping rule decides on the number of rounds. Repeats are then made in the next
    /// round instead of after the plan, whose end may never be reached. Repeats that are pending
    /// when the rule stops the experiment are not made.
    pub sequential: bool,
    /// The record of runs on disk.
    pub campaign: Option<&'a mut Campaign>,
    /// The observer of the host.
    pub observer: Option<&'a mut dyn HostObserver>,
}

/// The runs of an experiment.
#[derive(Debug, Default)]
pub struct Outcome {
    /// All runs in order of execution, including rejected ones.
    pub runs: Vec<Run>,
    /// The reason if the experiment ended before its plan was complete.
    pub stopped: Option<String>,
    /// Cell, arm and last reason of each arm that was given up.
    pub given_up: Vec<(String, String, String)>,
}

/// Runs `plan` and reports progress to `progress`.
///
/// # Errors
/// Returns the failure if it ended the experiment before its first run. No process is left running.
pub fn execute<W: Workload>(
    workload: &W,
    plan: &Plan<W::Load>,
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(Event<'_>),
) -> Result<Outcome, Failure> {
    execute_with(workload, plan, Extras::default(), interrupt, progress)
}

/// [`execute`] with optional parts.
///
/// # Errors
/// As [`execute`]; also fails if the record of the campaign does not fit the plan.
pub fn execute_with<W: Workload>(
    workload: &W,
    plan: &Plan<W::Load>,
    extras: Extras<'_>,
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(Event<'_>),
) -> Result<Outcome, Failure> {
    let arms = workload.arms();
    let names: Vec<String> = arms.iter().map(|arm| arm.name.clone()).collect();
    let visits = plan.visits(names.len());
    progress(Event::Planned {
        runs: visits.len() * names.len(),
    });
    let mut engine = Engine {
        workload,
        plan,
        extras,
        interrupt,
        progress,
        repeats_left: visits.len().div_ceil(2),
        runs_done: 0,
        names,
        calibrated_by: arms.iter().map(|arm| calibrating_arm(arm, &arms)).collect(),
        operations: BTreeMap::new(),
        failures: BTreeMap::new(),
        given_up: BTreeSet::new(),
        units: BTreeMap::new(),
        outcome: Outcome::default(),
    };
    engine.pass_on_settings();
    let begun = workload.begin(interrupt);
    let begun = begun.and_then(|()| {
        engine.record(|campaign| campaign.keep_fingerprint(&workload.fingerprint()))
    });
    let done = begun.and_then(|()| engine.rounds(visits));
    // `end` is called after `begin` even if a run failed; the first failure is reported.
    let done = done.and(workload.end());
    match done.and_then(|()| engine.record(|campaign| campaign.check_end())) {
        Ok(()) => {}
        // Runs that were made are returned even if a failure ended the experiment.
        Err(failure @ Failure::Impossible(_)) if engine.outcome.runs.is_empty() => {
            return Err(failure);
        }
        Err(failure) => engine.outcome.stopped = Some(failure.to_string()),
    }
    Ok(engine.outcome)
}

/// The arm whose calibration sets the number of operations for `arm`: the arm that it varies, if it
/// varies one, so that both do the same work, and so that the calibration does not need the
/// variation's set-up.
fn calibrating_arm(arm: &Arm, arms: &[Arm]) -> usize {
    let calibrating = arm.varied(arms).unwrap_or(arm);
    let index = arms.iter().position(|one| one.name == calibrating.name);
    index.unwrap_or(0)
}

/// The result of one attempt at a visit.
enum Attempted {
    /// The runs are final, even if rejected.
    Final,
    /// The visit is repeated later.
    Repeat,
}

/// A run that has ended.
struct FinishedRun {
    run: Run,
    /// Whether the arm failed; false for runs that were only disturbed.
    failed: bool,
    /// An error ends the experiment, although the run is kept.
    after: Result<(), Failure>,
}

struct Engine<'a, 'e, W: Workload> {
    workload: &'a W,
    plan: &'a Plan<W::Load>,
    extras: Extras<'e>,
    interrupt: &'a Interrupt,
    progress: &'a mut dyn FnMut(Event<'_>),
    runs_done: usize,
    names: Vec<String>,
    /// For each arm, the index of the arm whose calibration sets its number of operations.
    calibrated_by: Vec<usize>,
    repeats_left: usize,
    /// Calibrated number of operations by calibration key and arm.
    operations: BTreeMap<(String, usize), u64>,
    /// Number of consecutive failures by cell and arm.
    failures: BTreeMap<(usize, usize), u32>,
    given_up: BTreeSet<(usize, usize)>,
    /// Units of figures that hooks print, from the first run with each figure.
    units: BTreeMap<String, String>,
    outcome: Outcome,
}

/// A visit and the number of its earlier attempts.
type Attempt = (Visit, u32);

impl<W: Workload> Engine<'_, '_, W> {
    /// Runs all rounds, then the repeats; with a stopping rule the repeats are part of the next
    /// round.
    fn rounds(&mut self, visits: Vec<Visit>) -> Result<(), Failure> {
        let mut repeats = Vec::new();
        for round in visits.chunk_by(|a, b| a.pair == b.pair) {
            let mut round: Vec<Attempt> = round.iter().map(|visit| (visit.clone(), 0)).collect();
            if self.extras.sequential {
                round.append(&mut repeats);
            }
            repeats.extend(self.each(round)?);
            let decide = self.extras.decide.as_mut();
            if decide.is_some_and(|decide| decide(&self.outcome) == Decision::Stop) {
                return Ok(());
            }
        }
        self.with_repeats(repeats)
    }

    /// Makes visits, and repeats until no visit needs a repeat.
    fn with_repeats(&mut self, mut visits: Vec<Attempt>) -> Result<(), Failure> {
        while !visits.is_empty() {
            visits = self.each(visits)?;
        }
        Ok(())
    }

    /// Makes each visit once; returns the visits to repeat.
    fn each(&mut self, visits: Vec<Attempt>) -> Result<Vec<Attempt>, Failure> {
        let mut repeats = Vec::new();
        for (visit, attempt) in visits {
            match self.visit(&visit, attempt)? {
                Attempted::Repeat => repeats.push((visit, attempt + 1)),
                Attempted::Final => self.runs_done += self.names.len(),
            }
            // Visits from the record take no time, and would spoil estimates of the remaining time.
            let campaign = self.extras.campaign.as_deref();
            if !campaign.is_some_and(Campaign::replays) {
                (self.progress)(Event::Visited {
                    runs_done: self.runs_done,
                });
            }
        }
        Ok(repeats)
    }

    /// Calls `access` with the campaign; returns the default without a campaign.
    fn record<T: Default>(
        &mut self,
        access: impl FnOnce(&mut Campaign) -> Result<T, CampaignError>,
    ) -> Result<T, Failure> {
        match self.extras.campaign.as_deref_mut() {
            Some(campaign) => access(campaign).map_err(Failure::impossible),
            None => Ok(T::default()),
        }
    }

    fn visit(&mut self, visit: &Visit, attempt: u32) -> Result<Attempted, Failure> {
        for &arm in &visit.order {
            self.calibrate(visit.cell, arm, visit.pair)?;
        }
        let (mut runs, replayed) = self.attempt(visit)?;
        let given_up = |run: &&Run| {
            let arm = self.names.iter().position(|name| *name == run.arm);
            arm.is_none_or(|arm| self.given_up.contains(&(visit.cell, arm)))
        };
        let mut causes = runs
            .iter()
            .filter(|run| run.rejected.is_some() && !given_up(run));
        let cause = causes.next().map(|run| run.arm.clone());
        let repeated = cause.is_some() && attempt < MAX_REPEATS && self.repeats_left > 0;
        // Rejections from the record were already reported when they happened.
        for run in runs
            .iter()
            .filter(|run| run.rejected.is_some() && !replayed)
        {
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
            Attempted::Repeat
        } else {
            Attempted::Final
        })
    }

    /// Runs every arm once, or takes all runs from the record; the second value says which. On an
    /// error, the runs before it are kept.
    fn attempt(&mut self, visit: &Visit) -> Result<(Vec<Run>, bool), Failure> {
        let mut runs = Vec::new();
        let mut arms = visit.order.clone();
        arms.retain(|&arm| !self.given_up.contains(&(visit.cell, arm)));
        let (made, replayed) = self.record(|campaign| {
            let made = campaign.begin_visit(arms.len())?;
            Ok((made, campaign.replays()))
        })?;
        arms.truncate(made.unwrap_or(arms.len()));
        for (position, arm) in arms.into_iter().enumerate() {
            let ended = match self.one_run(visit, position, arm) {
                Ok((run, after)) => {
                    runs.push(run);
                    after
                }
                Err(failure) => Err(failure),
            };
            if let Err(failure) = ended {
                self.outcome.runs.extend(runs);
                return Err(failure);
            }
        }
        Ok((runs, replayed))
    }

    /// Takes a run from the record, or makes and records a new run. The second value is an error if
    /// the experiment must end after the run.
    fn one_run(
        &mut self,
        visit: &Visit,
        position: usize,
        arm: usize,
    ) -> Result<(Run, Result<(), Failure>), Failure> {
        let cell = &self.plan.cells[visit.cell].id;
        let name = self.names[arm].clone();
        let recorded = self.record(|campaign| campaign.ran(cell, &name, visit.pair))?;
        let FinishedRun { run, failed, after } = match recorded {
            Some(ran) => FinishedRun {
                run: ran.run,
                failed: ran.failed,
                after: Ok(()),
            },
            None => {
                let finished = self.new_run(visit, position, arm)?;
                self.keep_settings(arm)?;
                self.record(|campaign| campaign.add_run(&finished.run, finished.failed))?;
                if finished.after.is_err() {
                    self.record(|campaign| campaign.cut_visit(position + 1))?;
                }
                (self.progress)(Event::Ran { run: &finished.run });
                finished
            }
        };
        let units = run.detail.iter().flat_map(|detail| detail.units.clone());
        for (name, unit) in units {
            self.units.entry(name).or_insert(unit);
        }
        match &run.rejected {
            Some(reason) if failed => self.count_failure(visit.cell, arm, reason),
            Some(_) | None => drop(self.failures.remove(&(visit.cell, arm))),
        }
        Ok((run, after))
    }

    /// Passes the settings that earlier processes recorded to the workload.
    fn pass_on_settings(&mut self) {
        let Some(campaign) = self.extras.campaign.as_deref() else {
            return;
        };
        for (arm, name) in self.names.iter().enumerate() {
            if let Some(settings) = campaign.settings(name) {
                self.workload.recall(arm, settings);
            }
        }
    }

    /// Records the settings that the servers of `arm` report, the first time that they do.
    fn keep_settings(&mut self, arm: usize) -> Result<(), Failure> {
        let name = self.names[arm].clone();
        let workload = self.workload;
        self.record(|campaign| match workload.settings(arm) {
            Some(settings) if campaign.settings(&name).is_none() => {
                campaign.add_settings(&name, &settings)
            }
            Some(_) | None => Ok(()),
        })
    }

    fn new_run(
        &mut self,
        visit: &Visit,
        position: usize,
        arm: usize,
    ) -> Result<FinishedRun, Failure> {
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
            detail: None,
        };
        self.announce(cell, arm, visit.pair, false);
        let operations = self.operations_of(cell, arm);
        let limit = self.limit(cell);
        let planned = self.planned(cell);
        let observer = self.extras.observer.as_deref_mut();
        let observation = observer.map(|observer| (observer, run.arm.as_str(), planned));
        let interrupt = self.interrupt;
        let settings = RunSettings {
            operations,
            limit,
            seed: plan.seed_of(visit.pair),
        };
        match run_observed(self.workload, arm, cell, settings, interrupt, observation) {
            Ok(ObservedRun {
                mut measured,
                stolen,
                after,
            }) => {
                rejection::reject_non_finite(&mut measured);
                rejection::reject_changed_units(&mut measured, &self.units);
                // The run keeps its figures and is marked as rejected, because it may have taken
                // half a day.
                let failure = after.as_ref().err().map(ToString::to_string);
                measured.invalid = measured.invalid.take().or(failure);
                run.rejected = rejection::rejection(&measured, stolen, plan.max_foreign_cores);
                // An interrupt by the user is not a failure of the arm.
                let stopped = matches!(after, Err(Failure::Interrupted));
                let failed = measured.invalid.is_some() && !stopped;
                run.seconds = measured.seconds;
                run.metrics = measured.metrics;
                run.foreign_cpu_s = measured.foreign_cpu_s;
                run.detail = measured.detail;
                let after = match after {
                    Err(Failure::Run { .. }) => Ok(()),
                    other => other,
                };
                Ok(FinishedRun { run, failed, after })
            }
            Err(Failure::Run { reason }) => {
                run.rejected = Some(reason);
                Ok(FinishedRun {
                    run,
                    failed: true,
                    after: Ok(()),
                })
            }
            Err(failure) => Err(failure),
        }
    }

    /// Planned length of a load; `None` if the plan gives a number of operations.
    fn planned(&self, cell: &Cell<W::Load>) -> Option<Duration> {
        match self.plan.size {
            RunSize::Lasting(length) | RunSize::Timed(length) => {
                Some(length.mul_f64(cell.load.length_factor()))
            }
            RunSize::Operations(_) => None,
        }
    }

    /// Timeout of a run of `cell`, which is planned for longer with many clients.
    fn limit(&self, cell: &Cell<W::Load>) -> Duration {
        match self.plan.size {
            RunSize::Lasting(length) | RunSize::Timed(length) => {
                RUN_GRACE + length.mul_f64(cell.load.length_factor().max(1.0)) * 30
            }
            RunSize::Operations(_) => RUN_GRACE * 40,
        }
    }

    fn count_failure(&mut self, cell: usize, arm: usize, reason: &str) {
        let failures = self.failures.entry((cell, arm)).or_insert(0);
        *failures += 1;
        if *failures >= MAX_FAILURES && self.given_up.insert((cell, arm)) {
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

/// The current time as RFC 3339 in UTC.
#[must_use]
pub fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

#[cfg(test)]
mod tests;
