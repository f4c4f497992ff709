//! Reads a machine below a root.
//!
//! A missing file is an unknown value, because kernels, drivers and containers differ in what they
//! show. A file that exists and cannot be read or understood is an error that names it.

mod container;
mod cpus;
mod device;
mod disks;
mod irqs;
mod limits;
mod mounts;
mod nics;
mod nodes;
mod system;

pub(crate) use mounts::unescaped;

pub use crate::source::bits as numbers_of_mask;
pub use disks::bracketed;

use std::io;
use std::path::PathBuf;

use saiga_process::root::Root;

use crate::machine::Machine;
use crate::source::{Recording, Source};

/// Why a machine cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("cannot read {path}: {error}")]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("{path} is damaged: {text:?} is not {expected}")]
    Damaged {
        path: PathBuf,
        /// The start of its first line.
        text: String,
        expected: &'static str,
    },
    #[error("{path} is missing: not the root of a machine")]
    NotAMachine { path: PathBuf },
}

/// Reads the machine below `root`.
///
/// # Errors
/// A file cannot be read or understood, or the root has no CPUs.
pub fn read(root: &Root) -> Result<Machine, ReadError> {
    read_from(&Source::new(root))
}

/// Reads the machine below `root`, and keeps everything that was read.
pub(crate) fn record(root: &Root) -> Result<(Machine, Recording), ReadError> {
    let source = Source::new(root);
    let machine = read_from(&source)?;
    Ok((machine, source.into_recording()))
}

fn read_from(source: &Source) -> Result<Machine, ReadError> {
    let system = system::read(source)?;
    let mut nodes = nodes::read(source)?;
    let cpus = cpus::read(source, &nodes)?;
    if let [only] = nodes.as_mut_slice()
        && only.cpus.is_empty()
    {
        only.cpus = cpus.iter().map(|cpu| cpu.id).collect();
    }
    for node in &mut nodes {
        // Old kernels list offline CPUs, too.
        let is_online = |id: &u32| cpus.iter().any(|cpu| cpu.id == *id && cpu.is_online);
        node.cpus.retain(is_online);
    }
    let caches = cpus::caches(source, &cpus)?;
    let irqs = irqs::read(source)?;
    let mounts = mounts::read(source)?;
    let limits = limits::read(source, &mounts, &cpus, &nodes)?;
    Ok(Machine {
        nics: nics::read(source)?,
        disks: disks::read(source, &mounts)?,
        system,
        cpus,
        caches,
        nodes,
        irqs,
        limits,
    })
}
