//! One line per database, with the counters that explain its throughput best.

use crate::snapshot::Snapshot;

use super::format::{fit, number};

/// Prefix of the metrics of databases.
const PREFIX: &str = "db_";
/// Suffixes of the shown metrics, each with its label in the panel.
const SHOWN: [(&str, &str); 9] = [
    ("_Innodb_row_lock_waits_s", "lock waits"),
    ("_Innodb_buffer_pool_reads_s", "pool reads"),
    ("_Innodb_log_writes_s", "log writes"),
    ("_Innodb_os_log_fsyncs_s", "log syncs"),
    ("_database.deadlocks_s", "deadlocks"),
    ("_database.blks_read_s", "block reads"),
    ("_database.temp_files_s", "temporary files"),
    ("_wal.wal_write_s", "log writes"),
    ("_wal.wal_sync_s", "log syncs"),
];

/// One line for each database with known counters.
pub(super) fn lines(host: &Snapshot, columns: usize) -> Vec<String> {
    let mut databases: Vec<(&str, Vec<String>)> = Vec::new();
    for (suffix, label) in SHOWN {
        for (name, value) in host.metrics() {
            let database = name
                .strip_prefix(PREFIX)
                .and_then(|rest| rest.strip_suffix(suffix));
            let (Some(database), Some(value)) = (database, value) else {
                continue;
            };
            let part = format!("{label} {}/s", number(value));
            match databases.iter_mut().find(|(known, _)| *known == database) {
                Some((_, parts)) => parts.push(part),
                None => databases.push((database, vec![format!("db {database}"), part])),
            }
        }
    }
    let line = |(_, parts): &(&str, Vec<String>)| fit(parts, columns);
    databases.iter().map(line).collect()
}
