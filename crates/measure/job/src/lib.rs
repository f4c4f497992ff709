//! Campaigns from experiment files: the steps of a run, and their execution.
//!
//! `step` makes the ordered list of steps of a run. `dry_run` prints this list and `execution`
//! executes it, so the printed steps are the executed ones. [`Job`] implements the experiment
//! engine's workload on top. [`tpcc`] writes experiment files for TPC-C. Deliberately absent: the
//! file format (`saiga_experiment::file`).

mod amplification;
mod client;
mod dry_run;
mod execution;
mod fill;
mod fingerprint;
mod hosts;
mod line;
mod load;
mod loads;
mod machine;
mod port_owner;
mod proof;
mod reach;
mod ready;
mod record;
mod running;
mod settings;
mod setup;
mod snapshots;
mod step;
mod tables;
mod target;
mod time_series;
pub mod tpcc;
mod workload;

pub use dry_run::dry_run;
pub use loads::JobLoad;
pub use machine::{Machine, ThisMachine};
pub use reach::{ReachError, check_reach};
pub use setup::SetupError;
pub use target::{JobTarget, OwnTarget};
pub use workload::Job;
