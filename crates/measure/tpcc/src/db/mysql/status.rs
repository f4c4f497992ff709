//! Status counters of the server that help to explain a run.

use crate::db::SqlError;
use crate::db::rows::Rows;

/// Names in MySQL and MariaDB. The answer contains only the counters that the server has.
pub(super) const COUNTERS: [&str; 27] = [
    "Questions",
    "Com_commit",
    "Com_rollback",
    "Com_stmt_execute",
    "Com_stmt_prepare",
    "Bytes_received",
    "Bytes_sent",
    "Threads_connected",
    "Threads_running",
    "Aborted_clients",
    "Handler_commit",
    "Innodb_buffer_pool_pages_dirty",
    "Innodb_buffer_pool_read_requests",
    "Innodb_buffer_pool_reads",
    "Innodb_buffer_pool_wait_free",
    "Innodb_data_fsyncs",
    "Innodb_data_read",
    "Innodb_data_written",
    "Innodb_deadlocks",
    "Innodb_log_waits",
    "Innodb_log_writes",
    "Innodb_os_log_fsyncs",
    "Innodb_os_log_written",
    "Innodb_row_lock_current_waits",
    "Innodb_row_lock_time",
    "Innodb_row_lock_waits",
    "Uptime",
];

/// Parses rows of a name and a number.
pub(super) fn counters(rows: &Rows) -> Result<Vec<(String, f64)>, SqlError> {
    let counter = |row| {
        let (name, value) = (rows.text(row, 0)?, rows.text(row, 1)?);
        let number = value.parse().map_err(|_| SqlError::Unexpected {
            what: format!("the counter {name} is {value:?}, not a number"),
        });
        Ok((name.to_owned(), number?))
    };
    (0..rows.len()).map(counter).collect()
}
