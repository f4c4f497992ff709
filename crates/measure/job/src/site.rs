//! One run while it happens: executes steps, and undoes what it began.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};

use saiga_experiment::file::{Arm, Experiment, Hook, How, OnFailure, Point, printed};
use saiga_experiment::interrupt::Interrupt;
use saiga_experiment::result::Metric;
use saiga_experiment::secret;
use saiga_experiment::tool::{self, Undone};
use saiga_experiment::workload::{Failure, Figures};
use saiga_redis::remote::Remote;
use saiga_snapshot::DropError;
use saiga_tpcc::results::record::Consistency;
use tempfile::TempDir;

use crate::running::{self, Running};
use crate::step::{Side, Step, Steps};
use crate::tables::{Checked, Look};
use crate::{client, line, snapshots, tables};

/// Why a step cannot be done, now or ever.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StepError {
    /// A hook of rule `stop` failed.
    #[error("the hook {command:?} {at} failed ({how}): {said}")]
    Hook {
        command: String,
        at: String,
        how: String,
        said: String,
    },
    /// No rights to drop caches.
    #[error("{0}; run as root, or set drop_caches = false")]
    DropCaches(DropError),
    /// No folder for logs.
    #[error("cannot use the folder for temporary files: {0}; set TMPDIR to one that is writable")]
    Temporary(io::Error),
}

/// What the runs of a campaign have in common.
#[derive(Clone, Copy)]
pub(crate) struct Campaign<'a> {
    pub(crate) file: &'a Experiment,
    pub(crate) tool: &'a Path,
    /// What hooks of rule `ignore` did not do.
    pub(crate) ignored: &'a RefCell<Vec<String>>,
    /// Whether the data go when the process ends.
    pub(crate) makes_data_anew: bool,
}

/// The state of one run.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) arm: Arm,
    steps: Steps,
    /// Those that were started and not stopped yet, in the order of the file.
    pub(crate) servers: Vec<Option<Running>>,
    /// The points whose first hook before them, or what follows it, was reached.
    begun: Vec<Point>,
    /// What was seen of the tables so far.
    pub(crate) looks: Vec<Look>,
    /// What hooks printed of the run.
    pub(crate) figures: Figures,
    /// Logs.
    dir: TempDir,
}

impl Site {
    /// Does everything up to the load. What fails is undone as far as it began.
    pub(crate) fn open(
        campaign: Campaign<'_>,
        arm: &Arm,
        steps: Steps,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let temporary = |error| Failure::impossible(StepError::Temporary(error));
        let mut site = Self {
            arm: arm.clone(),
            servers: arm.servers.iter().map(|_| None).collect(),
            begun: Vec::new(),
            looks: Vec::new(),
            figures: Figures::default(),
            dir: tempfile::Builder::new()
                .prefix("saiga-run-")
                .tempdir()
                .map_err(temporary)?,
            steps,
        };
        for step in site.steps.before.clone() {
            let done = if interrupt.raised() {
                Err(Failure::Interrupted)
            } else {
                site.perform(campaign, &step, interrupt)
            };
            if let Err(failure) = done {
                // The first cause is what people must know; what goes wrong after it follows
                // from it more often than not.
                let _ = site.close(campaign);
                return Err(failure);
            }
        }
        for point in [Point::Arm, Point::Start, Point::Run] {
            site.begin(point);
        }
        Ok(site)
    }

    /// The folder for logs.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Runs the steps between the load and the end of the servers: the hooks of the run, then the
    /// checks of the tables, which an `obstacle` prevents. A failure stops none of them; the first
    /// one is returned. [`close`](Self::close) does the rest.
    pub(crate) fn end_run(
        &mut self,
        campaign: Campaign<'_>,
        obstacle: Option<&str>,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        let is_of_run = |step: &Step| {
            let is_hook = matches!(step, Step::Hook { point, .. } if *point == Point::Run);
            is_hook || matches!(step, Step::Check { .. })
        };
        let rest = self.steps.after.iter().position(|step| !is_of_run(step));
        let rest = rest.unwrap_or(self.steps.after.len());
        let mut first = Ok(());
        for step in self.steps.after.drain(..rest).collect::<Vec<_>>() {
            let done = match (&step, obstacle) {
                (Step::Check { checked, .. }, Some(why)) => {
                    self.not_checked(*checked, why.to_owned());
                    Ok(())
                }
                (Step::Check { checked, .. }, None) => {
                    let done = self.perform(campaign, &step, interrupt);
                    if let Err(failure) = &done {
                        self.not_checked(*checked, failure.to_string());
                    }
                    done
                }
                _ => self.perform(campaign, &step, &Interrupt::never()),
            };
            first = first.and(done);
        }
        first
    }

    /// Keeps that the tables of a database were not checked after the load.
    fn not_checked(&mut self, checked: Checked, why: String) {
        let seen = Consistency::missing(Side::After.name(), why);
        let database = checked.database;
        self.looks.push(Look { database, seen });
    }

    /// Does everything behind the load that was not done yet, all of it whatever fails; the first
    /// failure is told. The tables of a run that failed are not looked at.
    pub(crate) fn close(&mut self, campaign: Campaign<'_>) -> Result<(), Failure> {
        let mut first = Ok(());
        let mut steps = self.steps.after.clone();
        steps.retain(|step| !matches!(step, Step::Check { .. }));
        for step in steps {
            let done = self.perform(campaign, &step, &Interrupt::never());
            first = first.and(done);
        }
        first
    }

    fn begin(&mut self, point: Point) {
        if !self.begun.contains(&point) {
            self.begun.push(point);
        }
    }

    fn perform(
        &mut self,
        campaign: Campaign<'_>,
        step: &Step,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        match step {
            Step::Free(index) => running::check_free(&self.arm.servers[*index]),
            Step::Hook { point, side, hook } => {
                if *side == Side::Before {
                    self.begin(*point);
                } else if !self.begun.contains(point) {
                    return Ok(());
                }
                let at = format!("{} {}", side.name(), point.name());
                let declared = &campaign.file.hook_metrics;
                let log = self.log("hook");
                let printed = run_hook(hook, &at, &log, declared, campaign.ignored, interrupt)?;
                self.keep(printed)
            }
            Step::Restore | Step::Verify => {
                self.begin(Point::Arm);
                restore(campaign, step, interrupt)
            }
            Step::DropCaches => saiga_snapshot::drop_caches()
                .map_err(|error| Failure::impossible(StepError::DropCaches(error))),
            Step::Start(index) => {
                self.begin(Point::Arm);
                self.begin(Point::Start);
                let server = &self.arm.servers[*index];
                let log = self.log(&format!("server-{index}"));
                self.servers[*index] = Some(Running::start(server, campaign.tool, &log)?);
                Ok(())
            }
            Step::Ready(index) => match &mut self.servers[*index] {
                Some(running) => running.await_ready(&self.arm.servers[*index], interrupt),
                None => Ok(()),
            },
            Step::Logical(hook) => {
                let log = self.log("hook");
                run_hook(
                    hook,
                    "that restores",
                    &log,
                    &[],
                    campaign.ignored,
                    interrupt,
                )
                .map(drop)
            }
            Step::Flush => self.redis("empty", Remote::flush),
            Step::Fill { keys, value_bytes } => {
                self.redis("fill", |remote| remote.fill(*keys, *value_bytes))
            }
            Step::Check { side, checked } => self.check(campaign, *side, *checked, interrupt),
            Step::Stop(index) => match self.servers[*index].take() {
                Some(running) => running.stop(&self.arm.servers[*index], &self.log("stop")),
                None => Ok(()),
            },
            Step::Gone(index) if self.begun.contains(&Point::Start) => {
                running::await_gone(&self.arm.servers[*index])
            }
            // The load is not a step of ours: the engine asks for it.
            Step::Load | Step::Gone(_) => Ok(()),
        }
    }

    /// Keeps what a hook printed, unless another one has printed the same figure.
    fn keep(&mut self, printed: Figures) -> Result<(), Failure> {
        for (name, value) in printed.values {
            if self.figures.values.contains_key(&name) {
                return Err(Failure::run(format!("two hooks printed {name}")));
            }
            self.figures.values.insert(name, value);
        }
        self.figures.units.extend(printed.units);
        Ok(())
    }

    /// Checks the tables of a database. Before the load, tables that are not known to be consistent
    /// are a failure; after it, the finding is kept for [`judge`](crate::tables::judge).
    fn check(
        &mut self,
        campaign: Campaign<'_>,
        side: Side,
        checked: Checked,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        if interrupt.raised() {
            return Err(Failure::Interrupted);
        }
        let line = client::check_line(campaign.file, &self.arm, checked, campaign.tool);
        let seen = tables::look(&line, side, &self.log("check"), interrupt)?;
        let fault = seen.fault().filter(|_| side == Side::Before);
        let database = checked.database;
        self.looks.push(Look { database, seen });
        fault.map_or(Ok(()), |fault| Err(Failure::run(fault)))
    }

    fn log(&self, name: &str) -> PathBuf {
        self.dir.path().join(format!("{name}.log"))
    }

    fn redis(&self, what: &str, ask: impl FnOnce(Remote) -> io::Result<()>) -> Result<(), Failure> {
        let server = self.arm.servers.first();
        let Some((server, port)) = server.and_then(|server| Some((server, server.port?))) else {
            return Ok(());
        };
        ask(Remote::at(port)).map_err(|error| {
            Failure::run(format!(
                "cannot {what} server {:?} at port {port}: {error}",
                server.name
            ))
        })
    }
}

impl Side {
    /// `before`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

/// Runs one hook, and reads the figures that it prints, if it does; `at` says when.
pub(crate) fn run_hook(
    hook: &Hook,
    at: &str,
    log: &Path,
    declared: &[Metric],
    ignored: &RefCell<Vec<String>>,
    interrupt: &Interrupt,
) -> Result<Figures, Failure> {
    let line = line::hook(hook);
    let done = if hook.measures {
        let said = tool::ask(&line, "dash", log, hook.limit, interrupt)?;
        said.and_then(|text| {
            printed(&text, declared).map_err(|said| Undone {
                how: "its figures cannot be read".to_owned(),
                said,
            })
        })
    } else {
        let done = tool::run(&line, "dash", log, hook.limit, interrupt)?;
        done.map(|()| Figures::default())
    };
    let Undone { how, said } = match done {
        Ok(figures) => return Ok(figures),
        Err(undone) => undone,
    };
    let error = StepError::Hook {
        command: secret::line(&hook.command),
        at: at.to_owned(),
        how,
        said,
    };
    match hook.failure {
        OnFailure::Stop => Err(Failure::impossible(error)),
        OnFailure::Reject => Err(Failure::run(error.to_string())),
        OnFailure::Ignore => {
            ignored.borrow_mut().push(error.to_string());
            Ok(Figures::default())
        }
    }
}

fn restore(campaign: Campaign<'_>, step: &Step, interrupt: &Interrupt) -> Result<(), Failure> {
    let How::Snapshot {
        parts,
        snapshot,
        reflink,
        linked_files,
    } = &campaign.file.restore.how
    else {
        return Ok(());
    };
    if *step == Step::Verify {
        return snapshots::verify(snapshot, parts, interrupt);
    }
    let keeps_data = !campaign.makes_data_anew;
    snapshots::restore(
        snapshot,
        parts,
        (*reflink, *linked_files),
        keeps_data,
        interrupt,
    )
}
