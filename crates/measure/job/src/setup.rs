//! Errors of a job before its first run.

use std::path::PathBuf;

use saiga_process::version::ProgramError;
use saiga_tpcc::props::PropsError;

use crate::reach::ReachError;

/// The experiment cannot be run on this machine.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error(transparent)]
    Props(#[from] PropsError),
    /// A props file for building only.
    #[error(
        "{} has no parameters of a run; add terminals, and runMins or runTxnsPerTerminal",
        path.display()
    )]
    NoRun { path: PathBuf },
    /// A program of a Redis topology is missing or too old.
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error(transparent)]
    Reach(#[from] ReachError),
    /// Requirements of steps, such as `program /usr/sbin/mysqld`.
    #[error("not on this machine: {}; --dry-run shows which step needs what", .0.join(", "))]
    Missing(Vec<String>),
    /// An arm of a Redis topology runs under Saiga, but the library is not installed.
    #[error(
        "arm {arm:?} runs under Saiga, but libsaiga.so was not found; run `make install` or `cargo \
         build --release`"
    )]
    NoLibrary { arm: String },
}
