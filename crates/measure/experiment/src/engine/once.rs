//! One run: servers are made ready, the load runs, servers are stopped.
//!
//! What was measured stays, whatever comes after the load.

use std::fs::File;
use std::time::Duration;

use crate::beside::{self, Begun, Beside};
use crate::cpu::{StealWindow, Stolen};
use crate::interrupt::Interrupt;
use crate::plan::Cell;
use crate::process::{Child, CommandLine};
use crate::workload::{Conditions, Failure, Measured, Target, Workload};

/// One run from the start of its servers to their end, which is part of no pair.
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
    let asked = Asked {
        operations,
        limit,
        seed: 0,
    };
    let Watched {
        measured, after, ..
    } = watched(workload, arm, cell, asked, interrupt, None)?;
    after.map(|()| measured)
}

/// What a run is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) operations: u64,
    pub(super) limit: Duration,
    pub(super) seed: u64,
}

/// Who looks on, at which arm, and for how long that is planned to run.
pub(super) type Looker<'a, 'e> = (&'a mut (dyn Beside + 'e), &'a str, Option<Duration>);

/// A run and what happened beside it.
pub(super) struct Watched {
    pub(super) measured: Measured,
    /// What the hypervisor took while the load ran.
    pub(super) stolen: Stolen,
    /// How what came after the load went.
    pub(super) after: Result<(), Failure>,
}

/// The same, with what happened beside the load.
pub(super) fn watched<W: Workload>(
    workload: &W,
    arm: usize,
    cell: &Cell<W::Load>,
    asked: Asked,
    interrupt: &Interrupt,
    mut beside: Option<Looker<'_, '_>>,
) -> Result<Watched, Failure> {
    if interrupt.raised() {
        return Err(Failure::Interrupted);
    }
    let mut target = workload.prepare(arm, cell, interrupt)?;
    let hogs = start_hogs(&cell.hogged)?;
    match &mut beside {
        None => {}
        Some((looker, ..)) if target.watches_host() => looker.stand_back(),
        Some((looker, arm, planned)) => looker.begin(&Begun {
            arm,
            servers: target.servers(),
            hogs: hogs.iter().map(Child::pid).collect(),
            devices: target.devices(),
            planned: *planned,
        }),
    }
    let window = StealWindow::open().map_err(Failure::impossible)?;
    let measured = target.run(
        asked.operations,
        &Conditions {
            interrupt,
            hogs: &hogs,
            seed: asked.seed,
            limit: asked.limit,
        },
    );
    let stolen = window.stolen().map_err(Failure::impossible)?;
    let seen = beside.and_then(|(looker, _, _)| looker.end());
    drop(hogs);
    // What ended the load is the cause; what then went wrong with its servers follows from it.
    let (figures, after) = target.teardown();
    let mut measured = measured?;
    measured.add_figures(figures);
    measured.detail = beside::joined(measured.detail, seen);
    Ok(Watched {
        measured,
        stolen,
        after,
    })
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
