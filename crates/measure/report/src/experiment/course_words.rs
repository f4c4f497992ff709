//! Names of series as people call them, and the order in which a reader wants them.
//!
//! What the load did comes first, then what a workload of its own adds, then the host: CPUs,
//! who used them, disks, networks; then the counters of the database.

/// What a load tells of itself.
const LOAD: [(&str, &str); 11] = [
    ("new_orders_per_s", "New-Orders, per second"),
    ("throughput_ops_s", "throughput, per second"),
    ("new_order_p50_ms", "New-Order p50, ms"),
    ("new_order_p95_ms", "New-Order p95, ms"),
    ("new_order_p99_ms", "New-Order p99, ms"),
    ("response_mean_ms", "mean response time, ms"),
    ("concurrency", "transactions in the system"),
    ("errors_per_s", "errors, per second"),
    ("retries_per_s", "retries, per second"),
    ("backlog_count", "late starts"),
    ("waf", "write amplification"),
];
/// What the host does meanwhile.
const HOST: [(&str, &str); 16] = [
    ("cpu_user_percent", "CPU user, % of all cores"),
    ("cpu_system_percent", "CPU system, % of all cores"),
    ("cpu_interrupts_percent", "CPU interrupts, % of all cores"),
    (
        "cpu_iowait_percent",
        "CPU waiting for disks, % of all cores",
    ),
    ("server_cpu_percent", "server CPU, % of one core"),
    ("client_cpu_percent", "client CPU, % of one core"),
    ("run_queue_tasks", "run queue, tasks"),
    ("disk_write_kb_s", "disk writes, kB/s"),
    ("disk_read_kb_s", "disk reads, kB/s"),
    ("net_out_kb_s", "network out, kB/s"),
    ("net_in_kb_s", "network in, kB/s"),
    ("steal_percent", "steal, % of all cores"),
    ("context_switches_s", "context switches, per second"),
    ("server_rss_kb", "server memory, kB"),
    ("mem_available_kb", "memory available, kB"),
    ("mem_dirty_kb", "memory to be written, kB"),
];
/// How the names of a database's counters begin.
const DATABASE: &str = "db_";

/// The course of a value with its unit: `CPU user, % of all cores`.
pub(crate) fn title(name: &str) -> String {
    let known = LOAD.iter().chain(&HOST).find(|(known, _)| *known == name);
    match (known, name.strip_prefix(DATABASE)) {
        (Some((_, title)), _) => (*title).to_owned(),
        (None, Some(rest)) => match rest.split_once('_') {
            Some((label, variable)) => format!("{label}: {}", taken_apart(variable)),
            None => taken_apart(rest),
        },
        (None, None) => taken_apart(name),
    }
}

/// Where it stands among others; equal ones stay as the run has them.
pub(crate) fn rank(name: &str) -> usize {
    let place = |all: &[(&str, &str)]| all.iter().position(|(known, _)| *known == name);
    let own = LOAD.len();
    let host = own + 1;
    place(&LOAD)
        .or_else(|| Some(host + place(&HOST)?))
        .unwrap_or(if name.starts_with(DATABASE) {
            host + HOST.len()
        } else {
            own
        })
}

/// An unknown name in words, its unit behind a comma.
fn taken_apart(name: &str) -> String {
    const SUFFIXES: [(&str, &str); 15] = [
        ("_percent", "%"),
        ("_kb_s", "kB/s"),
        ("_packets_s", "packets/s"),
        ("_ops_s", "per second"),
        ("_per_min", "per minute"),
        ("_per_s", "per second"),
        ("_us", "µs"),
        ("_ms", "ms"),
        ("_mib", "MiB"),
        ("_kib", "KiB"),
        ("_kb", "kB"),
        ("_bytes", "bytes"),
        ("_tasks", "tasks"),
        ("_count", ""),
        ("_s", "per second"),
    ];
    let known = SUFFIXES.iter().find_map(|(suffix, unit)| {
        let rest = name.strip_suffix(suffix)?;
        Some((rest, *unit))
    });
    let (rest, unit) = known.unwrap_or((name, ""));
    let title = rest.replace('_', " ");
    if unit.is_empty() {
        title
    } else {
        format!("{title}, {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_with_their_unit() {
        for (name, expected) in [
            ("throughput_ops_s", "throughput, per second"),
            ("server_cpu_percent", "server CPU, % of one core"),
            ("queue_depth", "queue depth"),
            ("jobs_count", "jobs"),
            ("dirty_kb", "dirty, kB"),
            (
                "db_mysql_Innodb_row_lock_waits_s",
                "mysql: Innodb row lock waits, per second",
            ),
            ("db_mysql_Threads_running", "mysql: Threads running"),
        ] {
            assert_eq!(title(name), expected);
        }
    }

    #[test]
    fn the_load_comes_before_the_host_and_the_database_last() {
        let mut names = [
            "db_mysql_Innodb_log_writes_s",
            "steal_percent",
            "cpu_user_percent",
            "queue_depth",
            "concurrency",
            "new_orders_per_s",
        ];
        names.sort_by_key(|name| rank(name));
        let expected = [
            "new_orders_per_s",
            "concurrency",
            "queue_depth",
            "cpu_user_percent",
            "steal_percent",
            "db_mysql_Innodb_log_writes_s",
        ];
        assert_eq!(names, expected);
    }
}
