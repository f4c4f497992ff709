//! How a server is started on its CPUs: by numactl, by systemd, or by its own settings.

use super::CpuSet;
use super::instances::Instance;

/// Threads of openGauss's pool per core, from its documentation and procedure 004.
const THREADS_PER_CORE: f64 = 7.25;
/// The most threads that openGauss accepts in its pool.
const MAX_THREADS: f64 = 4096.0;

/// Where a server's memory is allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryPolicy {
    /// On the node of the CPU that first uses it (the kernel's default).
    Local,
    /// In turn on the nodes of the instance.
    Interleaved,
    /// Only on the nodes of the instance.
    Bound,
}

/// The `numactl` command in front of the server's own command.
#[must_use]
pub fn numactl(instance: &Instance, policy: MemoryPolicy) -> String {
    let nodes: CpuSet = instance.memory.iter().copied().collect();
    let memory = match policy {
        MemoryPolicy::Local => String::new(),
        MemoryPolicy::Interleaved => format!(" -i {nodes}"),
        MemoryPolicy::Bound => format!(" -m {nodes}"),
    };
    format!("numactl -C {}{memory}", instance.cpus)
}

/// A systemd drop-in for the unit of the server (`man 5 systemd.exec`).
#[must_use]
pub fn systemd(instance: &Instance, policy: MemoryPolicy) -> String {
    let nodes: CpuSet = instance.memory.iter().copied().collect();
    let cpus = instance.cpus.to_string().replace(',', " ");
    let policy = match policy {
        MemoryPolicy::Local => "NUMAPolicy=default\n".to_owned(),
        MemoryPolicy::Interleaved => {
            format!("NUMAPolicy=interleave\nNUMAMask=\nNUMAMask={nodes}\n")
        }
        MemoryPolicy::Bound => format!("NUMAPolicy=bind\nNUMAMask=\nNUMAMask={nodes}\n"),
    };
    // An empty list first: otherwise the lists of the unit itself are added.
    format!("[Service]\nCPUAffinity=\nCPUAffinity={cpus}\n{policy}")
}

/// openGauss's `thread_pool_attr` for a server on `cpus` of so many nodes.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and 4096"
)]
pub fn thread_pool(cpus: &CpuSet, nodes: usize) -> String {
    let threads = (cpus.len() as f64 * THREADS_PER_CORE).min(MAX_THREADS) as u32;
    format!("{threads},{nodes},(cpubind:{cpus})")
}
