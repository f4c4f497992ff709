//! Campaigns from experiment files: the steps of a run, and their execution.
//!
//! `step` lists what a run consists of, in order; `dry_run` prints the list and `site`
//! executes the same one, so that what is shown is what happens. [`Job`] plugs it into the
//! experiment engine. Deliberately absent: what a file may say (`saiga_experiment::file`).

mod amplification;
mod client;
mod course;
mod dry_run;
mod facts;
mod fill;
mod line;
mod load;
mod loads;
mod machine;
mod occupant;
mod proof;
mod reach;
mod ready;
mod record;
mod running;
mod settings;
mod setup;
mod site;
mod snapshots;
mod step;
mod tables;
mod target;
mod workload;

pub use dry_run::dry_run;
pub use loads::JobLoad;
pub use machine::{Machine, ThisMachine};
pub use reach::{Astray, check_reach};
pub use setup::SetupError;
pub use target::{JobTarget, OwnTarget};
pub use workload::Job;
