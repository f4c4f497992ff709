//! MySQL and MariaDB.

use super::{DiskKind, GIB, MIB, Resources, Wanted, minimum, setting, size};

const SUFFIXES: [&str; 2] = ["M", "G"];

/// The unit in which the buffer pool is resized (`innodb_buffer_pool_chunk_size`).
const CHUNK: u64 = 128 * MIB;

pub(super) fn wanted(resources: &Resources) -> Vec<Wanted> {
    let mut all = of_memory(resources);
    all.extend(of_connections(resources));
    all.extend(of_disk(resources.disk, resources.cores));
    all.push(setting(
        "innodb_adaptive_hash_index",
        "OFF",
        "its latches are contended on many cores; off by default since MySQL 8.4",
    ));
    if resources.nodes > 1 {
        all.push(setting(
            "innodb_numa_interleave",
            "ON",
            "the buffer pool is allocated on all nodes in turn, so that no node is full",
        ));
    }
    all
}

fn of_memory(resources: &Resources) -> Vec<Wanted> {
    let memory = resources.memory_bytes;
    // Three quarters of a dedicated server, as in the MySQL manual (innodb_dedicated_server).
    let share = if resources.is_dedicated {
        memory / 4 * 3
    } else {
        memory / 2
    };
    let pool = (share / CHUNK).max(1) * CHUNK;
    let pools = (pool / GIB).clamp(1, 16);
    let redo = (resources.cores as u64 / 2).clamp(1, 16) * GIB;
    vec![
        setting(
            "innodb_buffer_pool_size",
            size(pool, SUFFIXES),
            "75 % of the memory of a dedicated server, otherwise half of it",
        )
        .kept_if_higher(resources.is_dedicated),
        setting(
            "innodb_buffer_pool_instances",
            pools,
            "one for each GiB, at most 16: fewer threads wait for the same mutex",
        ),
        setting(
            "innodb_page_cleaners",
            pools,
            "one for each part of the buffer pool",
        ),
        minimum(
            "innodb_redo_log_capacity",
            size(redo, SUFFIXES),
            "half a GiB for each core, at most 16 GiB: fewer checkpoints under load",
        ),
        setting(
            "innodb_flush_method",
            "O_DIRECT",
            "pages are not cached twice",
        ),
    ]
}

fn of_connections(resources: &Resources) -> Vec<Wanted> {
    let connections = resources.connections;
    let is_minimum = !resources.are_connections_given;
    let of_connections =
        |name, value: u32, why| setting(name, value, why).kept_if_higher(is_minimum);
    vec![
        of_connections("max_connections", connections, "the expected connections"),
        of_connections(
            "thread_cache_size",
            connections.min(2000),
            "threads are kept for the next connection",
        ),
        of_connections(
            "back_log",
            connections.saturating_mul(2).min(4000),
            "connections that arrive together; net.core.somaxconn must be as large",
        ),
        of_connections(
            "table_open_cache",
            connections.saturating_mul(10).max(10_000),
            "no table is reopened under load",
        ),
        minimum(
            "table_open_cache_instances",
            (resources.cores / 2).clamp(16, 64),
            "fewer threads wait for the same mutex",
        ),
    ]
}

fn of_disk(disk: DiskKind, cores: usize) -> Vec<Wanted> {
    let (capacity, most) = match disk {
        DiskKind::Rotational => (200, 2000),
        DiskKind::Ssd => (2000, 4000),
        DiskKind::Nvme => (10_000, 20_000),
    };
    let threads = (cores / 4).clamp(4, 16);
    let mut all = vec![
        setting(
            "innodb_io_capacity",
            capacity,
            "pages a second that flushing in the background may write on this kind of disk",
        ),
        setting(
            "innodb_io_capacity_max",
            most,
            "the same while checkpoints are urgent",
        ),
        minimum(
            "innodb_read_io_threads",
            threads,
            "one for each 4 cores, 4 to 16",
        ),
        minimum(
            "innodb_write_io_threads",
            threads,
            "one for each 4 cores, 4 to 16",
        ),
    ];
    if disk != DiskKind::Rotational {
        all.push(setting(
            "innodb_flush_neighbors",
            0,
            "neighbouring pages are not cheaper to write on flash",
        ));
    }
    all
}
