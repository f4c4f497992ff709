//! openGauss: the part of `gs_perfconfig`'s profile for transactions that does not reduce safety.
//!
//! That profile also turns off TLS, auditing, security policies and full page writes; those values
//! are never proposed. The thread pool follows from the division of the cores
//! ([`thread_pool`](crate::cores::binding::thread_pool)).

use super::{GIB, MIB, Resources, Wanted, minimum, setting, size};

const SUFFIXES: [&str; 2] = ["MB", "GB"];

/// The smallest `max_process_memory` that the server accepts.
const MIN_PROCESS_MEMORY: u64 = 2 * GIB;

pub(super) fn wanted(resources: &Resources) -> Vec<Wanted> {
    let mut all = of_memory(resources);
    all.extend(of_log());
    let workers = (resources.cores as u64 * 15 / 100).clamp(1, 20);
    all.push(setting(
        "autovacuum_max_workers",
        workers,
        "15 % of the cores, 1 to 20 (gs_perfconfig)",
    ));
    all.push(
        setting(
            "max_connections",
            resources.connections,
            "the expected connections",
        )
        .kept_if_higher(!resources.are_connections_given),
    );
    if resources.nodes > 1 {
        all.push(setting(
            "numa_distribute_mode",
            "all",
            "threads and their locks are grouped by node (procedure 004)",
        ));
    }
    all
}

/// Shares of the memory, or of half of it if other programs use it, too. `gs_perfconfig` has fixed
/// sizes for WAL buffers and maintenance; these are upper limits here.
fn of_memory(resources: &Resources) -> Vec<Wanted> {
    let is_dedicated = resources.is_dedicated;
    let memory = if is_dedicated {
        resources.memory_bytes
    } else {
        resources.memory_bytes / 2
    };
    let whole = |bytes: u64| size((bytes / MIB).max(1) * MIB, SUFFIXES);
    let share = |name: &str, bytes: u64, why: &str| {
        setting(name, whole(bytes), why).kept_if_higher(is_dedicated)
    };
    let mut all = Vec::new();
    if resources.memory_bytes >= 2 * MIN_PROCESS_MEMORY {
        all.push(share(
            "max_process_memory",
            (memory / 100 * 60).max(MIN_PROCESS_MEMORY),
            "60 % of the memory (gs_perfconfig), or of half of it with --shared, at least 2 GB",
        ));
    }
    all.extend([
        share(
            "shared_buffers",
            memory / 100 * 45,
            "45 % of the memory (gs_perfconfig), or of half of it with --shared",
        ),
        setting(
            "work_mem",
            "1MB",
            "short transactions sort little (gs_perfconfig)",
        ),
        share(
            "maintenance_work_mem",
            (memory / 16).min(2 * GIB),
            "a sixteenth of the memory, at most 2 GB (gs_perfconfig)",
        ),
        share(
            "wal_buffers",
            (memory / 64).clamp(16 * MIB, GIB),
            "1/64 of the memory, at most 1 GB (gs_perfconfig)",
        ),
    ]);
    all
}

fn of_log() -> [Wanted; 3] {
    [
        minimum(
            "checkpoint_segments",
            3000,
            "checkpoints by time, not by volume (gs_perfconfig)",
        ),
        minimum(
            "wal_file_init_num",
            20,
            "WAL files that are initialised in advance (documentation)",
        ),
        minimum(
            "xloginsert_locks",
            16,
            "fewer backends wait to write WAL (documentation)",
        ),
    ]
}
