//! [`Workload`] and [`Target`]: the interface between the engine and a database under test.
//!
//! A workload lists its arms, describes its loads, and prepares a fresh [`Target`] for each run:
//! servers started, data loaded or restored. The engine decides on order, repetition and rejection.
//! Deliberately absent: anything specific to one database.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::error::Error;
use std::io;
use std::time::Duration;

use serde_json::Value;

use crate::plan::Cell;
use crate::result::{Arm, Detail, Metric, Warning};
use saiga_process::child::Child;
use saiga_process::cpu::{CpuWindow, Used};
use saiga_process::interrupt::Interrupt;

/// The parameters of a load generator in one cell.
pub trait Load: Clone {
    /// The name in cell ids: `set-c50-p16`; default values are left out.
    fn slug(&self) -> String;
    /// The parameters by name, for the cell in `result.json`.
    fn params(&self) -> BTreeMap<String, Value>;
    /// Factor by which runs are longer than planned.
    fn length_factor(&self) -> f64;
    /// Whether the length of a run depends on the number of operations, so that it needs a
    /// calibration.
    fn calibrates(&self) -> bool {
        true
    }
    /// Loads with equal keys are about equally fast and share a calibration.
    fn calibration_key(&self) -> String {
        self.slug()
    }
    /// The number of operations in the first calibration run.
    fn first_guess(&self) -> u64 {
        1
    }
    /// The smallest number of operations whose throughput is representative.
    fn least_operations(&self) -> u64 {
        1
    }
}

/// A database under test together with its load generator.
pub trait Workload {
    /// The parameters of one cell besides placement and hog.
    type Load: Load;
    /// Servers that are ready for one run.
    type Target: Target;

    /// The name of the experiment in results: `redis`.
    fn name(&self) -> &'static str;
    /// The arms, the reference first.
    fn arms(&self) -> Vec<Arm>;
    /// Versions of the programs by name.
    fn versions(&self) -> BTreeMap<String, String>;
    /// Further inputs that determine the runs, by name. A campaign can be resumed only if its
    /// fingerprint is unchanged.
    fn fingerprint(&self) -> BTreeMap<String, Value> {
        BTreeMap::new()
    }
    /// The settings that the servers of an arm reported; `None` before the first run of the arm.
    fn settings(&self, _arm: usize) -> Option<BTreeMap<String, String>> {
        None
    }
    /// Passes on the [`settings`](Self::settings) of an arm that an earlier process of the campaign
    /// recorded.
    fn recall(&self, _arm: usize, _settings: &BTreeMap<String, String>) {}
    /// A phrase for advice that says how runs become longer: `longer --seconds`.
    fn advice_for_longer_runs(&self) -> String {
        "longer --seconds".to_owned()
    }
    /// Warnings that apply to all results of this workload.
    fn caveats(&self) -> Vec<Warning>;
    /// Metrics specific to this workload, the main metric first.
    fn metrics(&self) -> Vec<Metric> {
        Vec::new()
    }
    /// Called before the first run.
    ///
    /// # Errors
    /// A failure ends the experiment without a run.
    fn begin(&self, _interrupt: &Interrupt) -> Result<(), Failure> {
        Ok(())
    }
    /// Called after the last run, even if a run failed, but only if [`begin`](Self::begin) was
    /// called.
    fn end(&self) -> Result<(), Failure> {
        Ok(())
    }
    /// The shell commands of one run, in order.
    fn steps(&self, arm: usize, cell: &Cell<Self::Load>, operations: u64) -> Vec<String>;
    /// Starts servers and restores their data.
    ///
    /// # Errors
    /// On failure no process is left running.
    fn prepare(
        &self,
        arm: usize,
        cell: &Cell<Self::Load>,
        interrupt: &Interrupt,
    ) -> Result<Self::Target, Failure>;
}

/// Servers that are ready for one run. Dropping a target stops its servers.
pub trait Target {
    /// Runs the load once.
    fn run(&mut self, operations: u64, conditions: &Conditions<'_>) -> Result<Measured, Failure>;
    /// PIDs of the servers, for samplers.
    fn servers(&self) -> Vec<u32> {
        Vec::new()
    }
    /// Disks and network interfaces to sample individually.
    fn devices(&self) -> Vec<String> {
        Vec::new()
    }
    /// Whether the load samples the host itself, so that the engine's observer is not needed.
    fn watches_host(&self) -> bool {
        false
    }
    /// Runs the steps after the load and stops the servers. Returns the figures that were measured
    /// around the load, and the result of these steps. The run keeps its figures even if they fail.
    fn teardown(self) -> (Figures, Result<(), Failure>);
}

/// Conditions of a run that the engine decides.
#[derive(Debug)]
pub struct Conditions<'a> {
    pub interrupt: &'a Interrupt,
    /// The CPU hogs that run beside the load.
    pub hogs: &'a [Child],
    /// Seed of the load's random inputs, equal for all arms of a pair. 0 for runs outside of a
    /// pair.
    pub seed: u64,
    /// Timeout; a longer run is stopped and rejected.
    pub limit: Duration,
}

/// Measures the CPU time of hogs and foreign processes during one run.
#[derive(Debug)]
pub struct Meter<'a> {
    window: CpuWindow,
    hogs: &'a [Child],
    hogs_before_s: f64,
}

/// Figures that hooks measured around the load.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    pub values: BTreeMap<String, f64>,
    /// Units of the values that no declared metric has, by name.
    pub units: BTreeMap<String, String>,
}

/// The measurements of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Length of the measured interval.
    pub seconds: f64,
    /// Values by name; each name ends with its unit.
    pub metrics: BTreeMap<String, f64>,
    /// CPU seconds that processes outside the experiment used within `window_s`.
    pub foreign_cpu_s: f64,
    pub window_s: f64,
    /// The reason for rejecting a run that ended; `None` for a valid run.
    pub invalid: Option<String>,
    /// Time series, checks and other details.
    pub detail: Option<Box<Detail>>,
}

impl Measured {
    /// Adds figures of hooks. A figure with the name of one of the load's metrics makes the run
    /// invalid.
    pub(crate) fn add_figures(&mut self, Figures { values, units }: Figures) {
        if !units.is_empty() {
            self.detail.get_or_insert_default().units = units;
        }
        for (name, value) in values {
            match self.metrics.entry(name) {
                Entry::Vacant(free) => {
                    free.insert(value);
                }
                Entry::Occupied(taken) => {
                    let name = taken.key();
                    let reason = format!(
                        "a hook printed {name}, which is a metric of Saiga; use another name"
                    );
                    self.invalid.get_or_insert(reason);
                }
            }
        }
    }
}

/// A run produced no measurement.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("interrupted")]
    Interrupted,
    /// This run failed; later runs may succeed.
    #[error("{reason}")]
    Run {
        /// The operation that failed, its object and the cause.
        reason: String,
    },
    /// No run can succeed, so the experiment ends.
    #[error(transparent)]
    Impossible(Box<dyn Error + Send + Sync>),
}

impl Failure {
    pub fn run(reason: impl Into<String>) -> Self {
        Self::Run {
            reason: reason.into(),
        }
    }

    pub fn impossible(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Impossible(Box::new(error))
    }
}

impl<'a> Meter<'a> {
    /// Begins the measurement at the current time.
    ///
    /// # Errors
    /// Fails if `/proc/stat` cannot be read.
    pub fn start(conditions: &Conditions<'a>) -> io::Result<Self> {
        let hogs = conditions.hogs;
        Ok(Self {
            window: CpuWindow::open()?,
            hogs,
            hogs_before_s: cpu_s(hogs)?,
        })
    }

    /// CPU time since the start, without that of the hogs. `children_cpu_s` is the CPU time of the
    /// run's servers and clients.
    ///
    /// # Errors
    /// Fails if `/proc/stat` cannot be read or a hog has ended.
    pub fn stop(self, children_cpu_s: f64) -> io::Result<Used> {
        let hogs_s = cpu_s(self.hogs)? - self.hogs_before_s;
        let mut used = self.window.close(children_cpu_s + hogs_s)?;
        used.busy_s = (used.busy_s - hogs_s).max(0.0);
        Ok(used)
    }
}

fn cpu_s(children: &[Child]) -> io::Result<f64> {
    children
        .iter()
        .map(|child| Ok(child.cpu_time()?.as_secs_f64()))
        .sum()
}
