//! Runs a plan: calibrates, visits cells, rejects and repeats, keeps every run.
//!
//! A visit in which a run is rejected is repeated as a whole, so that runs of one pair stay
//! adjacent in time: after all others, when what disturbed it may be over; at most
//! [`MAX_REPEATS`] times, and all repeats together at most half of the plan. An arm that
//! failed three times in a row in a cell is given up there.
//!
//! With a campaign, what was already run is taken from its record (`campaign`).
//!
//! Deliberately absent: conclusions (`analysis`).

mod judge;
mod once;
mod pace;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use crate::beside::Beside;
use crate::campaign::{Campaign, CampaignError};
use crate::interrupt::Interrupt;
use crate::plan::{Cell, Plan, RunSize, Visit};
use crate::result::{Arm, Run};
use crate::workload::{Failure, Load, Workload};

use once::{Asked, Watched, watched};

pub use judge::{OTHERS, STOLEN};
pub use once::measure;

/// How often one visit is repeated before its last attempt stands.
pub const MAX_REPEATS: u32 = 3;
/// How the reason of a run begins whose partner was rejected.
pub const REPEATED: &str = "repeated because";
/// Failures in a row after which an arm is given up in a cell.
const MAX_FAILURES: u32 = 3;
/// What a run may take beyond several times its planned length.
const RUN_GRACE: Duration = Duration::from_secs(15);

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
    /// A run is over that was not in the record, rejected or not.
    Ran {
        /// It.
        run: &'a Run,
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

/// What is to be done after a look at the runs so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// What is planned.
    GoOn,
    /// Nothing more: it is enough.
    Enough,
}

/// What may be added to the run of a plan.
#[derive(Default)]
pub struct Extras<'a> {
    /// Called after each round with everything so far.
    pub look: Option<&'a mut dyn FnMut(&Outcome) -> Look>,
    /// Whether looks decide how many rounds there are. Repeats then wait for the end of the next
    /// round, when what disturbed them may be over, and not for that of a plan that may never
    /// come to its end; when it is enough, those that still wait are not made.
    pub sequential: bool,
    /// Where the runs are kept, and what is already there.
    pub campaign: Option<&'a mut Campaign>,
    /// Who looks at the host beside each run.
    pub beside: Option<&'a mut dyn Beside>,
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
    execute_with(workload, plan, Extras::default(), interrupt, progress)
}

/// Runs `plan` with more besides.
///
/// # Errors
/// As [`execute`], and a record that does not fit the plan.
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
        paced_by: arms.iter().map(|arm| pace_of(arm, &arms)).collect(),
        operations: BTreeMap::new(),
        failures: BTreeMap::new(),
        broken: BTreeSet::new(),
        units: BTreeMap::new(),
        outcome: Outcome::default(),
    };
    engine.recall();
    let begun = workload.begin(interrupt);
    let begun =
        begun.and_then(|()| engine.record(|campaign| campaign.keep_facts(&workload.facts())));
    let done = begun.and_then(|()| engine.rounds(visits));
    // What was begun is ended, whatever happened between; the first failure is the cause.
    let done = done.and(workload.end());
    match done.and_then(|()| engine.record(|campaign| campaign.check_end())) {
        Ok(()) => {}
        // What was measured stays, whatever ended the experiment.
        Err(failure @ Failure::Impossible(_)) if engine.outcome.runs.is_empty() => {
            return Err(failure);
        }
        Err(failure) => engine.outcome.stopped = Some(failure.to_string()),
    }
    Ok(engine.outcome)
}

/// Which of `arms` finds out how many operations fill a run of `arm`: the one that it varies, so
/// that both do the same, and what makes the difference need not be set up to find out.
fn pace_of(arm: &Arm, arms: &[Arm]) -> usize {
    let pacer = arm.varied(arms).unwrap_or(arm);
    let place = arms.iter().position(|one| one.name == pacer.name);
    place.unwrap_or(0)
}

/// What became of one attempt at a visit.
enum Visited {
    /// Its runs stand, rejected or not.
    Stands,
    /// It comes again later.
    Repeat,
}

/// A run that is over.
struct Over {
    run: Run,
    /// Whether it failed, which is more than being disturbed.
    failed: bool,
    /// What ends the experiment, although the run is kept.
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
    /// For each arm the one whose pace decides how many operations its runs have.
    paced_by: Vec<usize>,
    repeats_left: usize,
    /// Calibrated operations by calibration key and arm.
    operations: BTreeMap<(String, usize), u64>,
    /// Failures in a row by cell and arm.
    failures: BTreeMap<(usize, usize), u32>,
    broken: BTreeSet<(usize, usize)>,
    /// Units of figures that hooks print, as the first run had them.
    units: BTreeMap<String, String>,
    outcome: Outcome,
}

/// A visit and how often it was made before.
type Attempt = (Visit, u32);

impl<W: Workload> Engine<'_, '_, W> {
    /// Every round, and the repeats after all of them, or after the next.
    fn rounds(&mut self, visits: Vec<Visit>) -> Result<(), Failure> {
        let mut repeats = Vec::new();
        for round in visits.chunk_by(|a, b| a.pair == b.pair) {
            let mut round: Vec<Attempt> = round.iter().map(|visit| (visit.clone(), 0)).collect();
            if self.extras.sequential {
                round.append(&mut repeats);
            }
            repeats.extend(self.each(round)?);
            let look = self.extras.look.as_mut();
            if look.is_some_and(|look| look(&self.outcome) == Look::Enough) {
                return Ok(());
            }
        }
        self.until_none(repeats)
    }

    /// Makes visits, then those again that are to be repeated.
    fn until_none(&mut self, mut visits: Vec<Attempt>) -> Result<(), Failure> {
        while !visits.is_empty() {
            visits = self.each(visits)?;
        }
        Ok(())
    }

    /// Makes each visit; the answer is what is to be repeated.
    fn each(&mut self, visits: Vec<Attempt>) -> Result<Vec<Attempt>, Failure> {
        let mut repeats = Vec::new();
        for (visit, attempt) in visits {
            match self.visit(&visit, attempt)? {
                Visited::Repeat => repeats.push((visit, attempt + 1)),
                Visited::Stands => self.runs_done += self.names.len(),
            }
            // What is in the record takes no time, and would spoil every estimate of it.
            let campaign = self.extras.campaign.as_deref();
            if !campaign.is_some_and(Campaign::replays) {
                (self.progress)(Event::Visited {
                    runs_done: self.runs_done,
                });
            }
        }
        Ok(repeats)
    }

    /// What the record says or takes; nothing where none is kept.
    fn record<T: Default>(
        &mut self,
        ask: impl FnOnce(&mut Campaign) -> Result<T, CampaignError>,
    ) -> Result<T, Failure> {
        match self.extras.campaign.as_deref_mut() {
            Some(campaign) => ask(campaign).map_err(Failure::impossible),
            None => Ok(T::default()),
        }
    }

    fn visit(&mut self, visit: &Visit, attempt: u32) -> Result<Visited, Failure> {
        for &arm in &visit.order {
            self.calibrate(visit.cell, arm, visit.pair)?;
        }
        let (mut runs, replayed) = self.attempt(visit)?;
        let given_up = |run: &&Run| {
            let arm = self.names.iter().position(|name| *name == run.arm);
            arm.is_none_or(|arm| self.broken.contains(&(visit.cell, arm)))
        };
        let mut causes = runs
            .iter()
            .filter(|run| run.rejected.is_some() && !given_up(run));
        let cause = causes.next().map(|run| run.arm.clone());
        let repeated = cause.is_some() && attempt < MAX_REPEATS && self.repeats_left > 0;
        // What was recorded was also said then.
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
            Visited::Repeat
        } else {
            Visited::Stands
        })
    }

    /// Runs every arm once, or takes all of them from the record, which the answer says; whatever
    /// ends it keeps what was measured before.
    fn attempt(&mut self, visit: &Visit) -> Result<(Vec<Run>, bool), Failure> {
        let mut runs = Vec::new();
        let mut arms = visit.order.clone();
        arms.retain(|&arm| !self.broken.contains(&(visit.cell, arm)));
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

    /// A run from the record, or a new one, which is recorded; and whether the experiment can go on.
    fn one_run(
        &mut self,
        visit: &Visit,
        position: usize,
        arm: usize,
    ) -> Result<(Run, Result<(), Failure>), Failure> {
        let cell = &self.plan.cells[visit.cell].id;
        let name = self.names[arm].clone();
        let recorded = self.record(|campaign| campaign.ran(cell, &name, visit.pair))?;
        let Over { run, failed, after } = match recorded {
            Some(ran) => Over {
                run: ran.run,
                failed: ran.failed,
                after: Ok(()),
            },
            None => {
                let over = self.new_run(visit, position, arm)?;
                self.keep_settings(arm)?;
                self.record(|campaign| campaign.add_run(&over.run, over.failed))?;
                if over.after.is_err() {
                    self.record(|campaign| campaign.cut_visit(position + 1))?;
                }
                (self.progress)(Event::Ran { run: &over.run });
                over
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

    /// Tells the workload what its servers said of their settings in earlier processes.
    fn recall(&mut self) {
        let Some(campaign) = self.extras.campaign.as_deref() else {
            return;
        };
        for (arm, name) in self.names.iter().enumerate() {
            if let Some(settings) = campaign.settings(name) {
                self.workload.recall(arm, settings);
            }
        }
    }

    /// Keeps what the servers of `arm` say of their settings, the first time that they do.
    fn keep_settings(&mut self, arm: usize) -> Result<(), Failure> {
        let name = self.names[arm].clone();
        let workload = self.workload;
        self.record(|campaign| match workload.settings(arm) {
            Some(said) if campaign.settings(&name).is_none() => campaign.add_settings(&name, &said),
            Some(_) | None => Ok(()),
        })
    }

    fn new_run(&mut self, visit: &Visit, position: usize, arm: usize) -> Result<Over, Failure> {
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
        let limit = self.limit();
        let planned = self.planned(cell);
        let looker = self.extras.beside.as_deref_mut();
        let beside = looker.map(|looker| (looker, run.arm.as_str(), planned));
        let interrupt = self.interrupt;
        let asked = Asked {
            operations,
            limit,
            seed: plan.seed_of(visit.pair),
        };
        match watched(self.workload, arm, cell, asked, interrupt, beside) {
            Ok(Watched {
                mut measured,
                stolen,
                after,
            }) => {
                judge::refuse_no_numbers(&mut measured);
                judge::refuse_other_units(&mut measured, &self.units);
                // The figures stay, marked: a run may have taken half a day.
                let left = after.as_ref().err().map(ToString::to_string);
                measured.invalid = measured.invalid.take().or(left);
                run.rejected = judge::rejection(&measured, stolen, plan.max_foreign_cores);
                // That the user stops the experiment says nothing about the arm.
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
                Ok(Over { run, failed, after })
            }
            Err(Failure::Run { reason }) => {
                run.rejected = Some(reason);
                Ok(Over {
                    run,
                    failed: true,
                    after: Ok(()),
                })
            }
            Err(failure) => Err(failure),
        }
    }

    /// How long a load is to run, where that is decided here.
    fn planned(&self, cell: &Cell<W::Load>) -> Option<Duration> {
        match self.plan.size {
            RunSize::Lasting(length) | RunSize::Timed(length) => {
                Some(length.mul_f64(cell.load.length_factor()))
            }
            RunSize::Operations(_) => None,
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

/// This moment as RFC 3339 in UTC.
#[must_use]
pub fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

#[cfg(test)]
mod tests;
