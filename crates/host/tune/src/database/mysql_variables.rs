//! The variables of a running MySQL or MariaDB server as settings.

use super::diff::{Running, Settings};

/// Variables of the rules and procedures that `SET GLOBAL` changes in MySQL 5.7 to 8.4 (MySQL
/// manual, "Dynamic System Variables"). MariaDB tells its own dynamic variables; MySQL does not.
const DYNAMIC: [&str; 21] = [
    "binlog_expire_logs_seconds",
    "innodb_adaptive_hash_index",
    "innodb_buffer_pool_size",
    "innodb_file_per_table",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_neighbors",
    "innodb_io_capacity",
    "innodb_io_capacity_max",
    "innodb_lru_scan_depth",
    "innodb_redo_log_capacity",
    "innodb_spin_wait_delay",
    "innodb_sync_spin_loops",
    "max_connect_errors",
    "max_connections",
    "max_prepared_stmt_count",
    "expire_logs_days",
    "sql_mode",
    "sync_binlog",
    "table_open_cache",
    "thread_cache_size",
    "time_zone",
];

/// Where the value of a variable comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub name: String,
    /// Such as `compiled`, `global` or `command_line`.
    pub kind: String,
    /// The configuration file; empty if there is none.
    pub path: String,
    /// Whether only a restart changes the value; `None` if the server does not say so.
    pub is_read_only: Option<bool>,
}

/// The settings of a server from its variables, as name and value. The origins may be missing:
/// MySQL 5.7 has no table of them. A restart is assumed for variables that are not known to be
/// dynamic.
#[must_use]
pub fn settings(variables: Vec<[String; 2]>, origins: Vec<Origin>) -> Settings {
    let variable = |[name, value]: [String; 2]| {
        let name = name.to_ascii_lowercase();
        let running = Running {
            value,
            unit: None,
            from: None,
            needs_restart: !DYNAMIC.contains(&name.as_str()),
        };
        (name, running)
    };
    let mut settings: Settings = variables.into_iter().map(variable).collect();
    for origin in origins {
        let Some(setting) = settings.get_mut(&origin.name.to_ascii_lowercase()) else {
            continue;
        };
        let is_without_file = origin.path.is_empty();
        setting.from = Some(if is_without_file {
            origin.kind
        } else {
            origin.path
        });
        if let Some(is_read_only) = origin.is_read_only {
            setting.needs_restart = is_read_only;
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables() -> Vec<[String; 2]> {
        let rows = [
            ("Max_Connections", "151"),
            ("back_log", "80"),
            ("innodb_flush_method", "fsync"),
            ("innodb_io_capacity", "200"),
        ];
        rows.map(|(name, value)| [name.to_owned(), value.to_owned()])
            .to_vec()
    }

    fn origin(name: &str, kind: &str, path: &str, is_read_only: Option<bool>) -> Origin {
        Origin {
            name: name.to_owned(),
            kind: kind.to_owned(),
            path: path.to_owned(),
            is_read_only,
        }
    }

    #[test]
    fn dynamic_variables_of_mysql_need_no_restart() {
        // MySQL 5.7: the server has no table of origins.
        let settings = settings(variables(), Vec::new());
        let restarts: Vec<(&str, bool)> = settings
            .iter()
            .map(|(name, running)| (name.as_str(), running.needs_restart))
            .collect();
        assert_eq!(
            restarts,
            [
                ("back_log", true),
                ("innodb_flush_method", true),
                ("innodb_io_capacity", false),
                ("max_connections", false),
            ]
        );
        assert!(settings.values().all(|running| running.from.is_none()));
    }

    #[test]
    fn origins_and_their_restarts_are_taken_from_the_server() {
        let origins = vec![
            origin("max_connections", "global", "/etc/mysql/my.cnf", None),
            origin("BACK_LOG", "compile-time", "", Some(false)),
            origin("not_a_variable", "compiled", "", Some(true)),
        ];
        let settings = settings(variables(), origins);
        let from = |name: &str| settings[name].from.as_deref();
        assert_eq!(from("max_connections"), Some("/etc/mysql/my.cnf"));
        assert_eq!(from("back_log"), Some("compile-time"));
        assert_eq!(from("innodb_io_capacity"), None);
        assert!(!settings["max_connections"].needs_restart);
        assert!(!settings["back_log"].needs_restart);
    }
}
