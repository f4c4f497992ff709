//! Why an experiment cannot be run on a machine.

use std::path::PathBuf;

use saiga_experiment::version::ProgramError;
use saiga_tpcc::props::PropsError;

use crate::reach::Astray;

/// Why an experiment cannot be run here.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A props file cannot be used.
    #[error(transparent)]
    Props(#[from] PropsError),
    /// A props file that only builds.
    #[error(
        "{} says nothing of a run: terminals, and runMins or runTxnsPerTerminal, are missing",
        path.display()
    )]
    NoRun {
        /// The file.
        path: PathBuf,
    },
    /// A program of a topology is missing.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The load would not reach the servers.
    #[error(transparent)]
    Astray(#[from] Astray),
    /// Things that the steps need.
    #[error("not on this machine: {}; --dry-run shows which step needs what", .0.join(", "))]
    Missing(Vec<String>),
    /// Saiga's library, for the private servers of a topology.
    #[error("arm {arm:?} runs under Saiga, and its library was not found")]
    NoLibrary {
        /// The arm.
        arm: String,
    },
}
