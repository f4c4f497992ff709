//! PostgreSQL.

use super::{DiskKind, GIB, MIB, Resources, Wanted, minimum, setting, size};

const SUFFIXES: [&str; 2] = ["MB", "GB"];
/// From this size on, page tables of 4 KiB pages cost more than reserving huge pages.
const HUGE_FROM: u64 = 2 * GIB;

pub(super) fn wanted(resources: &Resources) -> Vec<Wanted> {
    let mut all = of_memory(resources);
    all.extend(of_log());
    all.extend(of_workers(resources.cores));
    all.extend(of_disk(resources.disk));
    all
}

fn of_memory(resources: &Resources) -> Vec<Wanted> {
    let memory = resources.memory_bytes;
    let connections = resources.connections;
    let whole = |bytes: u64| size((bytes / MIB).max(1) * MIB, SUFFIXES);
    let (shared, cached) = if resources.is_dedicated {
        (memory / 4, memory / 4 * 3)
    } else {
        (memory / 8, memory / 2)
    };
    // Sorts and hashes of all connections together, two of them each.
    let work = (memory - shared) / 4 / u64::from(connections.max(1)) / 2;
    let mut all = vec![
        setting(
            "shared_buffers",
            whole(shared),
            "a quarter of the memory of a dedicated server (PostgreSQL manual), otherwise an \
             eighth",
        )
        .kept_if_higher(resources.is_dedicated),
        setting(
            "effective_cache_size",
            whole(cached),
            "shared buffers and page cache together, for the planner",
        ),
        setting(
            "maintenance_work_mem",
            whole((memory / 16).min(2 * GIB)),
            "a sixteenth of the memory, at most 2 GB",
        )
        .kept_if_higher(resources.is_dedicated),
        setting(
            "work_mem",
            whole(work.clamp(4 * MIB, GIB)),
            "a quarter of the rest, for two sorts of each connection",
        )
        .kept_if_higher(resources.is_dedicated),
        setting("max_connections", connections, "the expected connections")
            .kept_if_higher(!resources.are_connections_given),
    ];
    if shared >= HUGE_FROM {
        all.push(setting(
            "huge_pages",
            "try",
            "fewer page tables; reserve the pages with vm.nr_hugepages",
        ));
    }
    all
}

fn of_log() -> Vec<Wanted> {
    vec![
        minimum(
            "wal_buffers",
            "16MB",
            "one WAL segment: fewer writes by backends",
        ),
        minimum("max_wal_size", "16GB", "checkpoints by time, not by volume"),
        minimum("checkpoint_timeout", "15min", "fewer full pages in the WAL"),
        setting(
            "checkpoint_completion_target",
            "0.9",
            "checkpoints are spread over their interval",
        ),
    ]
}

fn of_workers(cores: usize) -> Vec<Wanted> {
    vec![
        minimum(
            "max_worker_processes",
            cores.max(8),
            "one for each core, at least 8",
        ),
        minimum(
            "max_parallel_workers",
            cores.max(8),
            "as many as worker processes",
        ),
        setting(
            "max_parallel_workers_per_gather",
            (cores / 2).clamp(1, 4),
            "half of the cores, at most 4",
        ),
    ]
}

fn of_disk(disk: DiskKind) -> Vec<Wanted> {
    let (page_cost, concurrency) = match disk {
        DiskKind::Rotational => ("4", 2),
        DiskKind::Ssd => ("1.1", 200),
        DiskKind::Nvme => ("1.1", 256),
    };
    vec![
        setting(
            "random_page_cost",
            page_cost,
            "random reads on this kind of disk",
        ),
        setting(
            "effective_io_concurrency",
            concurrency,
            "reads that the disk serves at the same time",
        ),
    ]
}
