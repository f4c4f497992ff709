//! CPUs, memory, descriptors, user and rights of this process.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::process::{Resource, getrlimit};
use rustix::thread::{CpuSet, sched_getaffinity};
use saiga_process::available_memory::available_bytes;
use saiga_process::numbers::list;
use saiga_process::root::Root;

use super::Found;
use crate::confine;
use crate::settings::{Bytes, CPU_MAX, Capability};

pub(super) fn cpu(cpu: usize) -> Found {
    let allowed = sched_getaffinity(None);
    let is_allowed = allowed.is_ok_and(|cpus| cpu < CpuSet::MAX_CPU && cpus.is_set(cpu));
    Found::when(is_allowed, || {
        "it is not online, or this process may not use it (taskset, cgroup)".to_owned()
    })
}

/// A kernel without nodes has one, with all memory.
pub(super) fn node(node: usize) -> Found {
    let nodes = Root::host().text("/sys/devices/system/node/has_memory");
    let nodes = nodes.ok().flatten().unwrap_or_else(|| "0".to_owned());
    let has_it = list(&nodes, CPU_MAX).is_some_and(|nodes| nodes.contains(&node));
    Found::when(has_it, || format!("nodes with memory: {nodes}"))
}

pub(super) fn descriptors(count: u64) -> Found {
    match getrlimit(Resource::Nofile).maximum {
        Some(most) if most < count => Found::Lacks(format!(
            "the limit is {most}: raise it (LimitNOFILE=, ulimit -Hn), or lower `tcp.connections`"
        )),
        Some(_) | None => Found::There,
    }
}

pub(super) fn memory(bytes: u64) -> Found {
    let available = available_bytes();
    Found::when(available >= bytes, || {
        let mebibytes = Bytes(available >> 20 << 20);
        format!("{mebibytes} are available: lower the key")
    })
}

pub(super) fn user(user: &str) -> Found {
    confine::check_user(user).into()
}

pub(super) fn capability(capability: Capability) -> Found {
    confine::check_capability(capability).into()
}

/// `up` makes the last part of the path.
pub(super) fn folder(path: &Path) -> Found {
    let place = match fs::metadata(path) {
        Ok(place) => place,
        Err(_) => {
            let parent = path.parent().is_some_and(Path::is_dir);
            return Found::when(parent, || "the directory around it is missing".to_owned());
        }
    };
    let is_closed = place.is_dir() && place.permissions().mode() & 0o022 == 0;
    Found::when(is_closed, || {
        "it is not a directory that only its owner may write to".to_owned()
    })
}
