//! The experiment of `saiga compare tpcc`: its servers, arms and file.

mod arms;
mod file;
mod private;

pub use arms::{goal, of_profile, own_arm, server, with_and_without};
pub use file::{Arm, ExperimentFile, Pace, RestorePoint, Server, StartCommand};
pub use private::{PrivatePlan, milliseconds};
