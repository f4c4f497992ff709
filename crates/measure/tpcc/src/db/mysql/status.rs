//! Status counters of the server that help to explain a run.

use crate::db::SqlError;
use crate::db::rows::Rows;

/// Names in MySQL and MariaDB. The answer contains only the counters that the server has.
pub(super) const COUNTERS: [&str; 31] = [
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
    "Connection_errors_max_connections",
    "Connections",
    "Ssl_accepts",
    "Ssl_finished_accepts",
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

/// Name of the lag of a replica among the counters.
pub(super) const REPLICA_LAG: &str = "replica_lag_s";
/// Column of SHOW REPLICA STATUS: `Seconds_Behind_Source` of MySQL 8.0.22 and later,
/// `Seconds_Behind_Master` of MariaDB 10.5.1 and later.
const LAG: usize = 32;

/// The largest lag of the rows of SHOW REPLICA STATUS, one for each source; NaN if none is known.
/// `None` without rows.
pub(super) fn replica_lag(rows: &Rows) -> Option<f64> {
    let lag = |row| rows.text(row, LAG).ok()?.parse::<f64>().ok();
    let lags = (0..rows.len()).filter_map(lag);
    (!rows.is_empty()).then(|| lags.max_by(f64::total_cmp).unwrap_or(f64::NAN))
}

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
