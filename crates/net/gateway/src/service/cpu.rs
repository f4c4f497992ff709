//! CPUs of workers.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::{ServiceError, system};
use crate::settings::{Device, Workers};

/// The CPU of each worker of a device; `None` for any.
pub(super) fn of_workers(device: &Device, workers: &Workers) -> Vec<Option<usize>> {
    let cpus = if device.cpus.is_empty() {
        &workers.cpus
    } else {
        &device.cpus
    };
    if cpus.is_empty() {
        return vec![None];
    }
    cpus.iter().copied().map(Some).collect()
}

/// Runs `start` on a CPU, which its threads inherit, and whose node its memory comes from. This
/// thread is moved back afterwards.
pub(super) fn on<T>(cpu: Option<usize>, start: impl FnOnce() -> T) -> Result<T, ServiceError> {
    let Some(cpu) = cpu else {
        return Ok(start());
    };
    let failed = "cannot run on the CPU of `workers.cpus`";
    if cpu >= CpuSet::MAX_CPU {
        return Err(system(failed)(io::ErrorKind::InvalidInput.into()));
    }
    let before = sched_getaffinity(None).map_err(io::Error::from);
    let before = before.map_err(system(failed))?;
    let mut only = CpuSet::new();
    only.set(cpu);
    let moved = sched_setaffinity(None, &only).map_err(io::Error::from);
    moved.map_err(system(failed))?;
    let started = start();
    let moved = sched_setaffinity(None, &before).map_err(io::Error::from);
    moved.map_err(system(failed))?;
    Ok(started)
}
