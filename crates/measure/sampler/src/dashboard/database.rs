//! Counters of databases that explain what happens, a line for each database.

use crate::snapshot::Snapshot;

use super::words::{fit, number};

/// How the names of their metrics begin.
const PREFIX: &str = "db_";
/// How the names end, by server, and what they are called here.
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

/// One line for each database whose counters are known.
pub(super) fn lines(host: &Snapshot, columns: usize) -> Vec<String> {
    let mut databases: Vec<(&str, Vec<String>)> = Vec::new();
    for (suffix, what) in SHOWN {
        for (name, value) in host.metrics() {
            let label = name
                .strip_prefix(PREFIX)
                .and_then(|rest| rest.strip_suffix(suffix));
            let (Some(label), Some(value)) = (label, value) else {
                continue;
            };
            let part = format!("{what} {}/s", number(value));
            match databases.iter_mut().find(|(known, _)| *known == label) {
                Some((_, parts)) => parts.push(part),
                None => databases.push((label, vec![format!("db {label}"), part])),
            }
        }
    }
    let line = |(_, parts): &(&str, Vec<String>)| fit(parts, columns);
    databases.iter().map(line).collect()
}
