//! Titles of time series, and the order in which a report shows them.
//!
//! Series of the load come first, then series that only some workloads have, then the host (CPUs,
//! CPU time of server and client, disks, networks), and last the counters of the database.

/// Series that every load records, with their titles.
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
/// Series of the host during the run, with their titles.
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
    ("mem_dirty_kb", "memory not yet written to disk, kB"),
];
/// Prefix of the names of a database's counters.
const DATABASE: &str = "db_";

/// Title of a series with its unit: `CPU user, % of all cores`.
pub(crate) fn title(name: &str) -> String {
    let known = LOAD.iter().chain(&HOST).find(|(known, _)| *known == name);
    match (known, name.strip_prefix(DATABASE)) {
        (Some((_, title)), _) => (*title).to_owned(),
        (None, Some(rest)) => match rest.split_once('_') {
            Some((label, variable)) => format!("{label}: {}", title_from_name(variable)),
            None => title_from_name(rest),
        },
        (None, None) => title_from_name(name),
    }
}

/// Sort key of a series in a report. A stable sort keeps series of equal rank in the run's order.
pub(crate) fn rank(name: &str) -> usize {
    let position = |all: &[(&str, &str)]| all.iter().position(|(known, _)| *known == name);
    let workload = LOAD.len();
    let host = workload + 1;
    position(&LOAD)
        .or_else(|| Some(host + position(&HOST)?))
        .unwrap_or(if name.starts_with(DATABASE) {
            host + HOST.len()
        } else {
            workload
        })
}

/// Title of an unknown series: its name with spaces, and the unit of its suffix after a comma.
fn title_from_name(name: &str) -> String {
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
    fn titles_have_spaces_and_a_unit() {
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
