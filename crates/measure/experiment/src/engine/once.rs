//! One run: prepares servers, runs the load beside hogs and an observer, stops the servers.
//!
//! The measurements are kept even if a step after the load fails.

use std::fs::File;
use std::time::Duration;

use crate::observer::{self, HostObserver, ObservedLoad};
use crate::plan::Cell;
use crate::workload::{Conditions, Failure, Measured, Target, Workload};
use saiga_process::child::{Child, CommandLine};
use saiga_process::cpu::{StealWindow, Stolen};
use saiga_process::interrupt::Interrupt;

/// Makes one run that is not part of a pair, from the start of its servers to their end.
///
/// # Errors
/// On failure no process is left running.
pub fn measure<W: Workload>(
    workload: &W,
    arm: usize,
    cell: &Cell<W::Load>,
    operations: u64,
    limit: Duration,
    interrupt: &Interrupt,
) -> Result<Measured, Failure> {
    let settings = RunSettings {
        operations,
        limit,
        seed: 0,
    };
    let ObservedRun {
        measured, after, ..
    } = run_observed(workload, arm, cell, settings, interrupt, None)?;
    after.map(|()| measured)
}

/// Settings of a run that do not depend on its arm and cell.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunSettings {
    pub(super) operations: u64,
    pub(super) limit: Duration,
    pub(super) seed: u64,
}

/// The observer, the name of the arm and the planned length of the run.
pub(super) type Observation<'a, 'e> = (&'a mut (dyn HostObserver + 'e), &'a str, Option<Duration>);

/// A run and the events beside it.
pub(super) struct ObservedRun {
    pub(super) measured: Measured,
    /// CPU time that the hypervisor took during the load.
    pub(super) stolen: Stolen,
    /// The result of the steps after the load.
    pub(super) after: Result<(), Failure>,
}

/// Makes one run with observer and hogs.
pub(super) fn run_observed<W: Workload>(
    workload: &W,
    arm: usize,
    cell: &Cell<W::Load>,
    settings: RunSettings,
    interrupt: &Interrupt,
    mut observation: Option<Observation<'_, '_>>,
) -> Result<ObservedRun, Failure> {
    if interrupt.raised() {
        return Err(Failure::Interrupted);
    }
    let mut target = workload.prepare(arm, cell, interrupt)?;
    let hogs = start_hogs(&cell.hogged)?;
    match &mut observation {
        None => {}
        Some((observer, ..)) if target.watches_host() => observer.begin_self_observed(),
        Some((observer, arm, planned)) => observer.begin(&ObservedLoad {
            arm,
            servers: target.servers(),
            hogs: hogs.iter().map(Child::pid).collect(),
            devices: target.devices(),
            planned: *planned,
        }),
    }
    let window = StealWindow::open().map_err(Failure::impossible)?;
    let measured = target.run(
        settings.operations,
        &Conditions {
            interrupt,
            hogs: &hogs,
            seed: settings.seed,
            limit: settings.limit,
        },
    );
    let stolen = window.close().map_err(Failure::impossible)?;
    let seen = observation.and_then(|(observer, _, _)| observer.end());
    drop(hogs);
    // The error of the load takes precedence; errors of the steps after it follow from it.
    let (figures, after) = target.teardown();
    let mut measured = measured?;
    measured.add_figures(figures);
    measured.detail = observer::joined(measured.detail, seen);
    Ok(ObservedRun {
        measured,
        stolen,
        after,
    })
}

/// Starts an endless loop on each of `cpus`; dropping the children kills them.
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
