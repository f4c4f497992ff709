//! [`Execution`]: executes the steps of one run, and undoes those that it began.
//!
//! In: the steps of `step`. Out: running servers, the figures of hooks and the results of table
//! checks. Hooks after a point run only if a step of that point was reached; servers are stopped
//! and later hooks run however the run went.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};

use saiga_experiment::file::{Arm, Experiment, Hook, How, OnFailure, Point, printed};
use saiga_experiment::result::Metric;
use saiga_experiment::tool::{self, Unsuccessful};
use saiga_experiment::workload::{Failure, Figures};
use saiga_hosts::Hosts;
use saiga_process::interrupt::Interrupt;
use saiga_process::secret;
use saiga_redis::remote::Remote;
use saiga_snapshot::DropError;
use saiga_tpcc::results::record::Consistency;
use tempfile::TempDir;

use crate::running::{self, Processes, Running};
use crate::step::{Side, Step, Steps};
use crate::tables::{CheckResult, DatabaseCheck};
use crate::{client, hosts, line, snapshots, tables};

/// A step failed in a way that ends the experiment.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StepError {
    #[error("the hook {command:?} {at} failed ({status}): {output}")]
    Hook {
        command: String,
        /// For example `before run`.
        at: String,
        status: String,
        output: String,
    },
    #[error("{0}; run as root, or set drop_caches = false")]
    DropCaches(DropError),
    /// The folder for logs cannot be created.
    #[error("cannot create a temporary directory: {0}; set TMPDIR to one that is writable")]
    Temporary(io::Error),
}

/// The parts of a job that its steps need; all runs share them.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) file: &'a Experiment,
    /// The path of this program.
    pub(crate) tool: &'a Path,
    /// Errors of hooks with `failure = "ignore"`.
    pub(crate) ignored: &'a RefCell<Vec<String>>,
    /// Whether this process generated the data and removes them at its end.
    pub(crate) generates_data: bool,
}

/// The state of one run.
#[derive(Debug)]
pub(crate) struct Execution {
    pub(crate) arm: Arm,
    steps: Steps,
    /// By index in the file; `None` for servers that were not started yet or were stopped.
    pub(crate) servers: Vec<Option<Running>>,
    /// The hosts of servers and client; `None` if they are on this host, not made yet, or removed.
    pub(crate) hosts: Option<Hosts>,
    /// The points of which a step was reached; only their hooks `after` run.
    begun: Vec<Point>,
    /// Results of the table checks so far.
    pub(crate) checks: Vec<CheckResult>,
    /// Figures that hooks printed.
    pub(crate) figures: Figures,
    /// The folder for logs; removed with this value.
    dir: TempDir,
}

impl Execution {
    /// Runs the steps before the load. If a step fails, the steps after the load run for the points
    /// that were begun, and the failure is returned.
    pub(crate) fn open(
        context: Context<'_>,
        arm: &Arm,
        steps: Steps,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let temporary = |error| Failure::impossible(StepError::Temporary(error));
        let mut execution = Self {
            arm: arm.clone(),
            servers: arm.servers.iter().map(|_| None).collect(),
            hosts: None,
            begun: Vec::new(),
            checks: Vec::new(),
            figures: Figures::default(),
            dir: tempfile::Builder::new()
                .prefix("saiga-run-")
                .tempdir()
                .map_err(temporary)?,
            steps,
        };
        for step in execution.steps.before.clone() {
            let done = if interrupt.raised() {
                Err(Failure::Interrupted)
            } else {
                execution.perform(context, &step, interrupt)
            };
            if let Err(failure) = done {
                // Failures of `close` are usually consequences of this failure, so they are
                // dropped.
                let _ = execution.close(context);
                return Err(failure);
            }
        }
        for point in [Point::Arm, Point::Start, Point::Run] {
            execution.begin(point);
        }
        Ok(execution)
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The processes on the side of the servers.
    pub(crate) fn processes(&mut self) -> Processes<'_> {
        Processes {
            servers: &mut self.servers,
            hosts: self.hosts.as_mut(),
        }
    }

    /// File of the client's network namespace; `None` for that of this process.
    pub(crate) fn client_network(&self) -> Option<PathBuf> {
        self.hosts.as_ref().map(|hosts| hosts.places().client)
    }

    /// Runs the steps between the load and the stop of the servers: the hooks of the run, then the
    /// checks of the tables. The checks are skipped if there is an `obstacle`, the reason for the
    /// report. All steps run even if one fails; the first failure is returned.
    /// [`close`](Self::close) runs the remaining steps.
    pub(crate) fn end_run(
        &mut self,
        context: Context<'_>,
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
                (Step::Check { check, .. }, Some(reason)) => {
                    self.add_skipped_check(*check, reason.to_owned());
                    Ok(())
                }
                (Step::Check { check, .. }, None) => {
                    let done = self.perform(context, &step, interrupt);
                    if let Err(failure) = &done {
                        self.add_skipped_check(*check, failure.to_string());
                    }
                    done
                }
                _ => self.perform(context, &step, &Interrupt::never()),
            };
            first = first.and(done);
        }
        first
    }

    /// Records that the tables of a database were not checked after the load.
    fn add_skipped_check(&mut self, check: DatabaseCheck, reason: String) {
        self.checks.push(CheckResult {
            database: check.database,
            consistency: Consistency::missing(Side::After.name(), reason),
        });
    }

    /// Runs the remaining steps after the load, even if one fails; the first failure is returned.
    /// The tables are not checked, because the run has failed if their checks remain.
    pub(crate) fn close(&mut self, context: Context<'_>) -> Result<(), Failure> {
        let mut first = Ok(());
        let mut steps = self.steps.after.clone();
        steps.retain(|step| !matches!(step, Step::Check { .. }));
        for step in steps {
            let done = self.perform(context, &step, &Interrupt::never());
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
        context: Context<'_>,
        step: &Step,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        match step {
            Step::CheckFree(index) => {
                running::check_free(&self.arm.servers[*index], context.file.wire.is_some())
            }
            Step::Hook { point, side, hook } => {
                if *side == Side::Before {
                    self.begin(*point);
                } else if !self.begun.contains(point) {
                    return Ok(());
                }
                let at = format!("{} {}", side.name(), point.name());
                let declared = &context.file.hook_metrics;
                let log = self.log("hook");
                let printed = run_hook(hook, &at, &log, declared, context.ignored, interrupt)?;
                self.keep(printed)
            }
            Step::Restore | Step::Verify => {
                self.begin(Point::Arm);
                restore(context, step, interrupt)
            }
            Step::DropCaches => saiga_snapshot::drop_caches()
                .map_err(|error| Failure::impossible(StepError::DropCaches(error))),
            Step::MakeHosts => self.make_hosts(context, interrupt),
            Step::RemoveHosts => {
                let stopped = self.hosts.take().map_or(Ok(()), Hosts::stop);
                stopped.map_err(Failure::impossible)
            }
            Step::Start(index) => {
                self.begin(Point::Arm);
                self.begin(Point::Start);
                self.start(context, *index)
            }
            Step::AwaitReady(index) => match &mut self.servers[*index] {
                Some(running) => running.await_ready(&self.arm.servers[*index], interrupt),
                None => Ok(()),
            },
            Step::Logical(hook) => {
                let log = self.log("hook");
                run_hook(hook, "that restores", &log, &[], context.ignored, interrupt).map(drop)
            }
            Step::Flush => self.redis("empty", Remote::flush),
            Step::Fill { keys, value_bytes } => {
                self.redis("fill", |remote| remote.fill(*keys, *value_bytes))
            }
            Step::Check { side, check } => self.check(context, *side, *check, interrupt),
            Step::Stop(index) => match self.servers[*index].take() {
                Some(running) => running.stop(&self.arm.servers[*index], &self.log("stop")),
                None => Ok(()),
            },
            Step::AwaitPortClosed(index) if self.begun.contains(&Point::Start) => {
                running::await_port_closed(&self.arm.servers[*index])
            }
            // The engine starts the load, through `Target::run`.
            Step::Load | Step::AwaitPortClosed(_) => Ok(()),
        }
    }

    fn make_hosts(&mut self, context: Context<'_>, interrupt: &Interrupt) -> Result<(), Failure> {
        let layout = hosts::layout(context.file, &self.arm, context.tool);
        let made = layout.map(|layout| Hosts::start(&layout, interrupt));
        self.hosts = made.transpose()?;
        Ok(())
    }

    fn start(&mut self, context: Context<'_>, index: usize) -> Result<(), Failure> {
        let log = self.log(&format!("server-{index}"));
        let (server, hosts) = (&self.arm.servers[index], self.hosts.as_ref());
        self.servers[index] = Some(Running::start(server, context.tool, &log, hosts)?);
        Ok(())
    }

    /// Adds the figures that a hook printed; fails if another hook printed one of them.
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

    /// Checks the tables of a database and keeps the result for [`tables::apply`]. Before the load,
    /// tables that are inconsistent or cannot be checked are a failure.
    fn check(
        &mut self,
        context: Context<'_>,
        side: Side,
        check: DatabaseCheck,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        if interrupt.raised() {
            return Err(Failure::Interrupted);
        }
        let mut line = client::check_line(context.file, &self.arm, check, context.tool);
        line.network = self.client_network();
        let consistency = tables::check(&line, side, &self.log("check"), interrupt)?;
        let fault = consistency.fault().filter(|_| side == Side::Before);
        self.checks.push(CheckResult {
            database: check.database,
            consistency,
        });
        fault.map_or(Ok(()), |fault| Err(Failure::run(fault)))
    }

    fn log(&self, name: &str) -> PathBuf {
        self.dir.path().join(format!("{name}.log"))
    }

    /// Sends commands to the arm's first server; `purpose` is a verb for the error message.
    fn redis(
        &self,
        purpose: &str,
        send: impl FnOnce(Remote) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let server = self.arm.servers.first();
        let Some((server, port)) = server.and_then(|server| Some((server, server.port?))) else {
            return Ok(());
        };
        send(Remote::at(port)).map_err(|error| {
            Failure::run(format!(
                "cannot {purpose} server {:?} at port {port}: {error}",
                server.name
            ))
        })
    }
}

impl Side {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

/// Runs a hook and reads the figures that it prints if it has `metrics = true`. `at` is the
/// position for error messages, such as `before run`. A failure is handled by the rule of the hook.
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
        let done = tool::capture(&line, "dash", log, hook.limit, interrupt)?;
        done.and_then(|text| {
            printed(&text, declared).map_err(|output| Unsuccessful {
                status: "invalid figures".to_owned(),
                output,
            })
        })
    } else {
        let done = tool::run(&line, "dash", log, hook.limit, interrupt)?;
        done.map(|()| Figures::default())
    };
    let Unsuccessful { status, output } = match done {
        Ok(figures) => return Ok(figures),
        Err(unsuccessful) => unsuccessful,
    };
    let error = StepError::Hook {
        command: secret::line(&hook.command),
        at: at.to_owned(),
        status,
        output,
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

fn restore(context: Context<'_>, step: &Step, interrupt: &Interrupt) -> Result<(), Failure> {
    let How::Snapshot {
        parts,
        snapshot,
        reflink,
        linked_files,
    } = &context.file.restore.how
    else {
        return Ok(());
    };
    if *step == Step::Verify {
        return snapshots::verify(snapshot, parts, interrupt);
    }
    let keeps_data = !context.generates_data;
    snapshots::restore(
        snapshot,
        parts,
        (*reflink, *linked_files),
        keeps_data,
        interrupt,
    )
}
