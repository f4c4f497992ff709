//! Reclaim, write-back and overcommit.

use crate::about::Risk;
use crate::goal::Engine;
use crate::knob::{Context, Domain, Knob, Place, Places};

const DOC: &str = "Linux admin-guide/sysctl/vm.rst";
const DIRTY: &str = "/proc/sys/vm/dirty_bytes";
const DIRTY_RATIO: &str = "/proc/sys/vm/dirty_ratio";
const BACKGROUND: &str = "/proc/sys/vm/dirty_background_bytes";
const BACKGROUND_RATIO: &str = "/proc/sys/vm/dirty_background_ratio";
const GIB: u64 = 1 << 30;
const DIRTY_REASON: &str = "On a host with much memory, a percentage is gigabytes of dirty \
                            pages, and a checkpoint waits until all of them are written.";
const DIRTY_EFFECT: &str = "shorter stalls of fsync; more writes if pages are dirtied again";

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        id: "vm.swappiness",
        purpose: "how readily memory of processes is swapped out instead of page cache",
        reason: "A page of the buffer pool that is swapped out is read twice.",
        source: "MariaDB: Configuring Swappiness; Linux admin-guide/sysctl/vm.rst",
        effect: "fewer swap-ins under memory pressure; none without pressure",
        default: "at most 1 for a server",
        domain: Domain::Number(0, 200),
        propose: |context, place| {
            let is_more = context.number(place)? > 1;
            (context.serves() && is_more).then(|| "1".to_owned())
        },
        ..Knob::memory("/proc/sys/vm/swappiness")
    },
    Knob {
        id: "vm.dirty_background_bytes",
        purpose: "dirty page cache at which the kernel begins to write, in bytes",
        reason: DIRTY_REASON,
        source: DOC,
        effect: DIRTY_EFFECT,
        default: "at most 268435456 for a PostgreSQL server with 32 GiB or more",
        domain: Domain::Number(1, i64::MAX as u64),
        at: Places::Coupled(BACKGROUND, BACKGROUND_RATIO),
        propose: |context, place| large_postgres(context, place, GIB / 4),
        check: |context, _, _| alone(context, "vm.dirty_background_ratio"),
        ..Knob::memory("")
    },
    Knob {
        id: "vm.dirty_bytes",
        purpose: "dirty page cache at which a writing process has to write itself, in bytes",
        reason: DIRTY_REASON,
        source: DOC,
        effect: DIRTY_EFFECT,
        default: "at most 1073741824 for a PostgreSQL server with 32 GiB or more",
        domain: Domain::Number(8192, i64::MAX as u64),
        at: Places::Coupled(DIRTY, DIRTY_RATIO),
        propose: |context, place| large_postgres(context, place, GIB),
        check: |context, _, _| alone(context, "vm.dirty_ratio"),
        ..Knob::memory("")
    },
    Knob {
        id: "vm.dirty_background_ratio",
        purpose: "dirty page cache at which the kernel begins to write, in percent",
        reason: DIRTY_REASON,
        source: DOC,
        effect: DIRTY_EFFECT,
        domain: Domain::Number(1, 100),
        at: Places::Coupled(BACKGROUND_RATIO, BACKGROUND),
        check: |context, _, _| alone(context, "vm.dirty_background_bytes"),
        ..Knob::memory("")
    },
    Knob {
        id: "vm.dirty_ratio",
        purpose: "dirty page cache at which a writing process has to write itself, in percent",
        reason: DIRTY_REASON,
        source: DOC,
        effect: DIRTY_EFFECT,
        domain: Domain::Number(1, 100),
        at: Places::Coupled(DIRTY_RATIO, DIRTY),
        check: |context, _, _| alone(context, "vm.dirty_bytes"),
        ..Knob::memory("")
    },
    Knob {
        id: "vm.min_free_kbytes",
        purpose: "memory that is kept free for interrupts and the kernel",
        reason: "A burst of packets gets memory at once, without reclaim.",
        source: "gs_checkos check_list.conf; Linux admin-guide/sysctl/vm.rst",
        effect: "fewer stalls of direct reclaim; the memory is lost to the page cache",
        domain: Domain::Number(128, i32::MAX as u64),
        check: |context, _, value| {
            let kib = context.memory_bytes() / 1024;
            match value.parse::<u64>() {
                Ok(value) if kib > 0 && value > kib / 20 => Err(format!(
                    "more than 5 % of {kib} KiB could stop every allocation"
                )),
                _ => Ok(()),
            }
        },
        ..Knob::memory("/proc/sys/vm/min_free_kbytes")
    },
    Knob {
        id: "vm.zone_reclaim_mode",
        purpose: "whether a full node reclaims its own pages before it uses another node",
        reason: "A buffer pool larger than a node evicts page cache that it could keep elsewhere.",
        source: "PostgreSQL and MongoDB operations notes; Linux admin-guide/sysctl/vm.rst",
        effect: "removes stalls on full nodes; remote memory instead",
        default: "0 for a server",
        domain: Domain::Number(0, 7),
        propose: |context, _| context.serves().then(|| "0".to_owned()),
        ..Knob::memory("/proc/sys/vm/zone_reclaim_mode")
    },
    Knob {
        id: "vm.overcommit_memory",
        purpose: "whether processes may reserve more memory than the host has",
        reason: "Redis forks to save: with 0, the fork of a large instance may be refused.",
        source: "redis.io/docs: administration; Linux mm/overcommit-accounting.rst",
        effect: "none on speed; saves do not fail",
        default: "1 for a Redis server",
        domain: Domain::Number(0, 2),
        propose: |context, _| {
            let redis = context.serves_any(&[Engine::Redis]);
            redis.then(|| "1".to_owned())
        },
        check: |_, _, value| {
            if value == "2" {
                return Err(
                    "with 2, allocations of running processes may fail: set it at boot, \
                            with vm.overcommit_ratio"
                        .to_owned(),
                );
            }
            Ok(())
        },
        ..Knob::memory("/proc/sys/vm/overcommit_memory")
    },
    Knob {
        id: "vm.oom_dump_tasks",
        purpose: "whether the kernel lists all tasks when memory runs out",
        reason: "With tens of thousands of threads, the list itself takes seconds.",
        source: DOC,
        effect: "none until memory runs out; then the log has less for a diagnosis",
        risk: Risk::TradesSafety,
        domain: Domain::Number(0, 1),
        ..Knob::memory("/proc/sys/vm/oom_dump_tasks")
    },
];

/// A lower number of bytes stays. 0 means that the percentage counts.
fn large_postgres(context: &Context, place: &Place, bytes: u64) -> Option<String> {
    let is_large = context.memory_bytes() >= 32 * GIB;
    let is_lower = (1..bytes).contains(&context.number(place)?);
    (is_large && !is_lower && context.serves_any(&[Engine::Postgres])).then(|| bytes.to_string())
}

/// The kernel keeps only one of two coupled values.
fn alone(context: &Context, other: &str) -> Result<(), String> {
    if context.goal.named.iter().any(|named| named.knob == other) {
        return Err(format!(
            "{other} is named, and the kernel keeps one of the two"
        ));
    }
    Ok(())
}
