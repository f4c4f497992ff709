//! The values of the procedures that Saiga replaces (`--like procedure-001`).

use super::{Engine, Wanted, setting};

/// The names of the procedures with a configuration, each with its engine.
pub const NAMES: [(&str, Engine); 4] = [
    ("procedure-001", Engine::MySql),
    ("procedure-002", Engine::Redis),
    ("procedure-004", Engine::OpenGauss),
    ("gs_perfconfig", Engine::OpenGauss),
];

/// A setting, its value, and the cost of the value.
type Row = (&'static str, &'static str, Option<&'static str>);

/// Two MySQL instances on 128 cores and 512 GB with NVMe drives.
const MYSQL_001: [Row; 35] = [
    ("max_connections", "2000", None),
    ("back_log", "4000", None),
    (
        "performance_schema",
        "OFF",
        Some("waits and statements of the server can no longer be seen"),
    ),
    ("max_prepared_stmt_count", "128000", None),
    ("innodb_file_per_table", "ON", None),
    ("innodb_log_file_size", "2048M", None),
    ("innodb_log_files_in_group", "32", None),
    ("innodb_open_files", "10000", None),
    ("table_open_cache_instances", "64", None),
    ("table_open_cache", "30000", None),
    ("innodb_buffer_pool_size", "150G", None),
    ("innodb_buffer_pool_instances", "16", None),
    ("innodb_log_buffer_size", "2048M", None),
    ("default_time_zone", "+8:00", None),
    ("thread_cache_size", "2000", None),
    ("sync_binlog", "1", None),
    ("innodb_flush_log_at_trx_commit", "1", None),
    ("innodb_use_native_aio", "ON", None),
    ("innodb_spin_wait_delay", "180", None),
    ("innodb_sync_spin_loops", "25", None),
    ("innodb_flush_method", "O_DIRECT", None),
    ("innodb_io_capacity", "30000", None),
    ("innodb_io_capacity_max", "40000", None),
    ("innodb_lru_scan_depth", "9000", None),
    ("innodb_page_cleaners", "16", None),
    ("innodb_flush_neighbors", "0", None),
    ("innodb_write_io_threads", "24", None),
    ("innodb_read_io_threads", "16", None),
    ("innodb_purge_threads", "32", None),
    (
        "sql_mode",
        "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO,STRICT_ALL_TABLES",
        None,
    ),
    (
        "binlog_expire_logs_seconds",
        "1800",
        Some("binary logs are deleted after half an hour: no point-in-time recovery before that"),
    ),
    ("max_connect_errors", "2000", None),
    ("innodb_adaptive_hash_index", "OFF", None),
    ("mysqlx", "OFF", None),
    ("log_bin", "mysql-bin", None),
];

const REDIS_002: [Row; 2] = [
    ("appendonly", "yes", None),
    ("cluster-node-timeout", "5000", None),
];

const OPENGAUSS_004: [Row; 2] = [
    ("advance_xlog_file_num", "10", None),
    ("numa_distribute_mode", "all", None),
];

/// The part of `gs_perfconfig`'s profile for transactions that has a cost, besides what is always
/// refused.
const GS_PERFCONFIG: [Row; 2] = [
    (
        "full_page_writes",
        "off",
        Some("pages torn by a power failure are lost, unless enable_double_write is on"),
    ),
    (
        "enable_memory_limit",
        "off",
        Some("the server may use all memory of the host"),
    ),
];

/// Capacities: a higher running value serves the procedure as well.
const CAPACITIES: [&str; 4] = [
    "max_connections",
    "back_log",
    "thread_cache_size",
    "table_open_cache",
];

/// The values of a procedure; `None` for an unknown name.
#[must_use]
pub fn like(name: &str) -> Option<Vec<Wanted>> {
    let rows: &[Row] = match name {
        "procedure-001" => &MYSQL_001,
        "procedure-002" => &REDIS_002,
        "procedure-004" => &OPENGAUSS_004,
        "gs_perfconfig" => &GS_PERFCONFIG,
        _ => return None,
    };
    let wanted = rows.iter().map(|(setting_name, value, trades)| Wanted {
        trades: trades.map(str::to_owned),
        is_minimum: CAPACITIES.contains(setting_name),
        ..setting(setting_name, value, name)
    });
    Some(wanted.collect())
}
