//! A layer through which all file operations of this crate pass, for fault injection.
//!
//! A test can install a function that is called before each operation. The function can return an
//! error, as a failing disk does, or kill the process, so that the tests try an interruption at
//! every operation.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::name;

/// A failed operation on a file or a file system.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} {}: {error}", name::shown(path))]
pub struct Fault {
    /// The operation as a verb: `read`, `make the folder`.
    pub doing: &'static str,
    pub path: PathBuf,
    #[source]
    pub error: io::Error,
}

impl Fault {
    /// A closure for `map_err`.
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

/// Kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    /// Reads names and metadata, or opens an existing file.
    Inspect,
    /// Reads content of a file.
    Read,
    /// Changes content, length or holes of a file.
    Write,
    /// Makes a file, a folder or a link, or renames one.
    Make,
    /// Removes a file, a folder or a link.
    Remove,
    /// Changes owner, mode, times or attributes.
    SetMetadata,
    /// Waits until data are on the disk.
    Flush,
}

type Gate = Box<dyn Fn(Op) -> io::Result<()> + Send + Sync>;

/// The file systems of this machine, with an optional gate that each operation must pass.
#[derive(Default)]
pub(crate) struct Disk {
    gate: Option<Gate>,
}

impl Disk {
    /// A disk without a gate.
    pub(crate) fn real() -> Self {
        Self::default()
    }

    /// A disk that calls `gate` before each operation.
    #[cfg(test)]
    pub(crate) fn gated(gate: impl Fn(Op) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self {
            gate: Some(Box::new(gate)),
        }
    }

    /// Runs `work`, unless the gate returns an error.
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
