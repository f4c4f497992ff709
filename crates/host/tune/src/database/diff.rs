//! The difference between wanted values and those that a server runs with.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Engine, Wanted, redo_log, refused, value};

/// A setting of a running server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    pub value: String,
    /// The unit of a value without suffix, as in `pg_settings`.
    pub unit: Option<String>,
    /// Where the value comes from: a file with its line, the command line, or a default.
    pub from: Option<String>,
    /// Whether the server must be restarted for a new value.
    pub needs_restart: bool,
}

/// The settings of a running server, by name.
pub type Settings = BTreeMap<String, Running>;

/// A setting that should have another value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub wanted: Wanted,
    pub running: Running,
    /// The name under which the procedure or rule knows it, if the server has another.
    pub renamed_from: Option<String>,
}

/// The comparison of a server with wanted values.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Diff {
    pub changes: Vec<Change>,
    /// Names of settings that have the wanted value.
    pub same: Vec<String>,
    /// Names that this server does not know.
    pub unknown: Vec<String>,
    /// Settings whose running value is higher than the wanted minimum, and stays.
    pub higher: Vec<Change>,
    /// Sizes above the memory of the instance.
    pub too_large: Vec<Wanted>,
    /// Values that reduce safety, and were not named.
    pub traded: Vec<Wanted>,
    /// Values that are never set, with the reason.
    pub refused: Vec<(Wanted, String)>,
}

/// Settings that have another name in other versions or forks, in one or the other direction.
const RENAMED: [(&str, &str); 4] = [
    // MariaDB, and MySQL before 8.0.30.
    (redo_log::CAPACITY, redo_log::FILE_SIZE),
    ("binlog_expire_logs_seconds", "expire_logs_days"),
    ("default_time_zone", "time_zone"),
    // Redis before 6.2 and Valkey keep the old names of replication; the size has one since 7.0.
    ("list-max-listpack-size", "list-max-ziplist-size"),
];

/// Memory that a server allocates, as a whole or for each use.
const OF_MEMORY: [&str; 6] = [
    "innodb_buffer_pool_size",
    "innodb_log_buffer_size",
    "max_process_memory",
    "maintenance_work_mem",
    "shared_buffers",
    "wal_buffers",
];

/// Compares the wanted values with the running ones. `named` has the names of settings whose
/// trade-offs the user accepts; `memory_bytes` is the memory of the instance.
#[must_use]
pub fn diff(
    engine: Engine,
    running: &Settings,
    wanted: &[Wanted],
    named: &[String],
    memory_bytes: u64,
) -> Diff {
    let mut diff = Diff::default();
    for wanted in &redo_log::of_server(running, wanted) {
        if let Some(why) = refused::reason(engine, &wanted.name, &wanted.value) {
            diff.refused.push((wanted.clone(), why.to_owned()));
            continue;
        }
        let Some((name, found, value)) = find(running, wanted) else {
            diff.unknown.push(wanted.name.clone());
            continue;
        };
        let unit = found.unit.as_deref();
        let is_of_memory = OF_MEMORY.contains(&name.as_str());
        let fits = !is_of_memory || !value::exceeds(&found.value, unit, memory_bytes);
        let change = |name: String| Change {
            renamed_from: (name != wanted.name).then(|| wanted.name.clone()),
            wanted: Wanted {
                name,
                value: value.clone(),
                ..wanted.clone()
            },
            running: found.clone(),
        };
        if is_of_memory && value::exceeds(&value, unit, memory_bytes) {
            diff.too_large.push(wanted.clone());
        } else if value::is_same(&found.value, unit, &value) {
            diff.same.push(name);
        } else if wanted.is_minimum && fits && value::is_higher(&found.value, unit, &value) {
            diff.higher.push(change(name));
        } else if wanted.trades.is_some() && !named.contains(&wanted.name) {
            diff.traded.push(wanted.clone());
        } else {
            diff.changes.push(change(name));
        }
    }
    diff
}

/// The setting under its own or its other name, with the value in the unit of that name.
fn find<'a>(running: &'a Settings, wanted: &Wanted) -> Option<(String, &'a Running, String)> {
    if let Some(found) = running.get(&wanted.name) {
        return Some((wanted.name.clone(), found, wanted.value.clone()));
    }
    let other = RENAMED.iter().find_map(|(new, old)| {
        let other = if wanted.name == *new { old } else { new };
        (wanted.name == *new || wanted.name == *old).then_some(*other)
    })?;
    let found = running.get(other)?;
    let value = converted(running, &wanted.name, other, &wanted.value)?;
    Some((other.to_owned(), found, value))
}

/// The value under another name; `None` if it cannot be expressed.
fn converted(running: &Settings, from: &str, to: &str, value: &str) -> Option<String> {
    match (from, to) {
        ("binlog_expire_logs_seconds", "expire_logs_days") => {
            let seconds: f64 = value.parse().ok()?;
            Some((seconds / 86_400.0).to_string())
        }
        (redo_log::CAPACITY, redo_log::FILE_SIZE) => redo_log::file_size(running, value),
        _ => Some(value.to_owned()),
    }
}
