//! Errors of a check.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;
use saiga_record::RecordError;
use saiga_streams::route::{PlanError, RouteError};
use saiga_waf::drive::OpenError;
use saiga_waf::placement::NoPlacement;

use crate::AS_ROOT;

/// Why the hints, the writes or the handles of a directory cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    #[error("cannot watch for Ctrl-C: {0}")]
    Interrupt(io::Error),
    #[error(transparent)]
    Route(#[from] RouteError),
    /// The directory cannot carry hints at all.
    #[error("{}: {obstacle}", dir.display())]
    Obstacle { dir: PathBuf, obstacle: String },
    #[error("cannot check {}: {error}{}", dir.display(), advice(*error))]
    Files { dir: PathBuf, error: Errno },
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("cannot record the hints of writes: {0}")]
    NoBpf(String),
    #[error("this kernel does not report the hint of a write; needs Linux 6.9")]
    NoHints,
    #[error("a write has the unknown hint {0}")]
    UnknownHint(u8),
    #[error(transparent)]
    Drive(#[from] OpenError),
    #[error("{disk}: {error}")]
    Placement { disk: String, error: NoPlacement },
    /// No commands can be given that put the parts of the directory in namespaces of their own.
    #[error("no plan for {}: {why}", dir.display())]
    NoPlan { dir: PathBuf, why: String },
    #[error(transparent)]
    Plan(#[from] PlanError),
}

fn advice(error: Errno) -> &'static str {
    if error == Errno::ACCESS { AS_ROOT } else { "" }
}
