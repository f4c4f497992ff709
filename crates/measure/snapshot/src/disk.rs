//! The door through which this crate changes and reads disks, and what comes back through it.
//!
//! Each operation passes a gate first. In use the gate is open; in tests it lets an operation
//! fail as a failing disk does, or ends the process there, so that every point of an
//! interruption is tried.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::name;

/// An operation of the file system failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} {}: {error}", name::shown(path))]
pub struct Fault {
    /// What was to be done, as a verb: `read`, `make the folder`.
    pub doing: &'static str,
    /// To which file.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub error: io::Error,
}

impl Fault {
    /// For `map_err`.
    pub(crate) fn at<E: Into<io::Error>>(
        doing: &'static str,
        path: &Path,
    ) -> impl FnOnce(E) -> Self {
        let path = path.to_owned();
        move |error| Self {
            doing,
            path,
            error: error.into(),
        }
    }
}

/// Kinds of operations, as the gate sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    /// Looks at names, kinds and attributes; opens what exists.
    Look,
    /// Reads bytes of a file.
    Read,
    /// Writes bytes of a file, its length or its holes.
    Write,
    /// Makes a file, folder, link, or gives one a new name.
    Make,
    /// Removes a name.
    Remove,
    /// Changes owner, mode, times or attributes.
    Dress,
    /// Waits until all of it is on the disk.
    Flush,
}

type Gate = Box<dyn Fn(Op) -> io::Result<()> + Send + Sync>;

/// The disks of this machine behind a gate.
#[derive(Default)]
pub(crate) struct Disk {
    gate: Option<Gate>,
}

impl Disk {
    /// An open gate.
    pub(crate) fn real() -> Self {
        Self::default()
    }

    /// A gate that tests close.
    #[cfg(test)]
    pub(crate) fn gated(gate: impl Fn(Op) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self {
            gate: Some(Box::new(gate)),
        }
    }

    /// Does `work`, unless the gate fails it.
    pub(crate) fn pass<T, E: Into<io::Error>>(
        &self,
        op: Op,
        work: impl FnOnce() -> Result<T, E>,
    ) -> io::Result<T> {
        if let Some(gate) = &self.gate {
            gate(op)?;
        }
        work().map_err(Into::into)
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gated = self.gate.is_some();
        f.debug_struct("Disk").field("gated", &gated).finish()
    }
}
