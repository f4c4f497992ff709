//! What the engine needs to know about a workload.
//!
//! A workload lists its arms, describes its loads, and makes a fresh [`Target`] for
//! every run: servers started, data loaded or restored. The engine decides order,
//! repetition and rejection. Deliberately absent: anything about one database.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::error::Error;
use std::io;
use std::time::Duration;

use serde_json::Value;

use crate::cpu::{CpuWindow, Used};
use crate::interrupt::Interrupt;
use crate::plan::Cell;
use crate::process::Child;
use crate::result::{Arm, Detail, Metric, Warning};

/// What a load generator is told to do; a workload has several.
pub trait Load: Clone {
    /// As an identifier: `set-c50-p16`; what is as usual is left out.
    fn slug(&self) -> String;
    /// As the keys of a cell.
    fn params(&self) -> BTreeMap<String, Value>;
    /// How much longer than planned its runs should last.
    fn length_factor(&self) -> f64;
    /// Whether the number of operations decides how long a run is.
    fn calibrates(&self) -> bool {
        true
    }
    /// Loads with one key run about equally fast, and share a calibration.
    fn calibration_key(&self) -> String {
        self.slug()
    }
    /// Operations with which calibration begins.
    fn first_guess(&self) -> u64 {
        1
    }
    /// Operations below which a run does not show its steady pace.
    fn least_operations(&self) -> u64 {
        1
    }
}

/// A database under test together with its load generator.
pub trait Workload {
    /// The conditions of one cell besides placement and hog.
    type Load: Load;
    /// What stands ready for one run.
    type Target: Target;

    /// In one word: `redis`.
    fn name(&self) -> &'static str;
    /// What is compared, the reference first.
    fn arms(&self) -> Vec<Arm>;
    /// Versions of the programs that take part.
    fn versions(&self) -> BTreeMap<String, String>;
    /// What else decides what its runs are and mean, by name: two processes may add to one campaign
    /// only when it is the same for both.
    fn facts(&self) -> BTreeMap<String, Value> {
        BTreeMap::new()
    }
    /// What the servers of an arm said of their settings, once they have run.
    fn settings(&self, _arm: usize) -> Option<BTreeMap<String, String>> {
        None
    }
    /// What [`settings`](Self::settings) were in an earlier process of the same campaign.
    fn recall(&self, _arm: usize, _settings: &BTreeMap<String, String>) {}
    /// What makes its runs longer, for those who wish more certainty: `longer --seconds`.
    fn remedy(&self) -> String {
        "longer --seconds".to_owned()
    }
    /// What every reader must know about this workload's figures.
    fn caveats(&self) -> Vec<Warning>;
    /// Metrics that only this workload has, the main one first.
    fn metrics(&self) -> Vec<Metric> {
        Vec::new()
    }
    /// What comes before the first run.
    ///
    /// # Errors
    /// [`Failure`]; no run is made then.
    fn begin(&self, _interrupt: &Interrupt) -> Result<(), Failure> {
        Ok(())
    }
    /// What comes after the last run, however it went, when [`begin`](Self::begin) was called.
    ///
    /// # Errors
    /// [`Failure`].
    fn end(&self) -> Result<(), Failure> {
        Ok(())
    }
    /// The commands of one run, in order, as a shell would take them.
    fn steps(&self, arm: usize, cell: &Cell<Self::Load>, operations: u64) -> Vec<String>;
    /// Starts servers and restores their data.
    ///
    /// # Errors
    /// [`Failure`]; nothing is left running then.
    fn prepare(
        &self,
        arm: usize,
        cell: &Cell<Self::Load>,
        interrupt: &Interrupt,
    ) -> Result<Self::Target, Failure>;
}

/// Servers that are ready for one run. Dropping it stops them, at the latest.
pub trait Target {
    /// Runs the load once.
    ///
    /// # Errors
    /// [`Failure`].
    fn run(&mut self, operations: u64, conditions: &Conditions<'_>) -> Result<Measured, Failure>;
    /// The processes that serve the load, for those who look at what they use.
    fn servers(&self) -> Vec<u32> {
        Vec::new()
    }
    /// Disks and network interfaces to look at one by one.
    fn devices(&self) -> Vec<String> {
        Vec::new()
    }
    /// Whether the load looks at the host itself, so that nobody else has to.
    fn watches_host(&self) -> bool {
        false
    }
    /// Does what comes after the load, and stops what was started. The answer has figures of the run
    /// that were measured around it, and how that went: whatever failed, the run keeps its figures.
    fn teardown(self) -> (Figures, Result<(), Failure>);
}

/// What surrounds a run.
#[derive(Debug)]
pub struct Conditions<'a> {
    /// The user's wish to stop.
    pub interrupt: &'a Interrupt,
    /// Busy processes of ours that run beside the load.
    pub hogs: &'a [Child],
    /// From which the load's inputs follow, for loads that draw them: the same for all arms of a
    /// pair. 0 for a run that is part of no pair.
    pub seed: u64,
    /// A run that takes longer is stopped and rejected.
    pub limit: Duration,
}

/// CPU time of everything during one run.
#[derive(Debug)]
pub struct Meter<'a> {
    window: CpuWindow,
    hogs: &'a [Child],
    hogs_before_s: f64,
}

/// Figures of a run that were measured around it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// Values by name.
    pub values: BTreeMap<String, f64>,
    /// Units of those that no metric declares.
    pub units: BTreeMap<String, String>,
}

/// What one run measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// How long the load ran.
    pub seconds: f64,
    /// Values by name, units last.
    pub metrics: BTreeMap<String, f64>,
    /// CPU seconds of processes that are not part of the experiment.
    pub foreign_cpu_s: f64,
    /// Wall-clock seconds in which they were counted.
    pub window_s: f64,
    /// Why the run cannot count although it ended; `None` when it can.
    pub invalid: Option<String>,
    /// What the run tells beyond its metrics.
    pub detail: Option<Box<Detail>>,
}

impl Measured {
    /// Adds figures that were measured around the run. One whose name the load has already makes
    /// the run invalid.
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
                    let why =
                        format!("a hook printed {name}, which Saiga measures; name it otherwise");
                    self.invalid.get_or_insert(why);
                }
            }
        }
    }
}

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// This run failed; another may succeed.
    #[error("{reason}")]
    Run {
        /// What failed, on what.
        reason: String,
    },
    /// No run can succeed.
    #[error(transparent)]
    Impossible(Box<dyn Error + Send + Sync>),
}

impl Failure {
    /// A failure of this run alone.
    pub fn run(reason: impl Into<String>) -> Self {
        Self::Run {
            reason: reason.into(),
        }
    }

    /// A failure that ends the experiment.
    pub fn impossible(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Impossible(Box::new(error))
    }
}

impl<'a> Meter<'a> {
    /// Starts to count.
    ///
    /// # Errors
    /// `/proc/stat` cannot be read.
    pub fn start(conditions: &Conditions<'a>) -> io::Result<Self> {
        let hogs = conditions.hogs;
        Ok(Self {
            window: CpuWindow::open()?,
            hogs,
            hogs_before_s: cpu_s(hogs)?,
        })
    }

    /// What was spent so far; `children_cpu_s` is what the servers and clients of this run used.
    ///
    /// # Errors
    /// `/proc/stat` cannot be read, or a hog has died.
    pub fn stop(self, children_cpu_s: f64) -> io::Result<Used> {
        let hogs_s = cpu_s(self.hogs)? - self.hogs_before_s;
        self.window.close(children_cpu_s + hogs_s)
    }
}

fn cpu_s(children: &[Child]) -> io::Result<f64> {
    children
        .iter()
        .map(|child| Ok(child.cpu_time()?.as_secs_f64()))
        .sum()
}
