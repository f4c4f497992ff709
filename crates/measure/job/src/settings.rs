//! Reads the settings of running servers.
//!
//! MySQL and MariaDB: `SHOW GLOBAL VARIABLES`; PostgreSQL and openGauss: `pg_settings`; Redis:
//! `CONFIG GET *`. Deliberately absent: the servers of workloads of kind `command`, for which the
//! experiment file contains no log-in.

use std::collections::BTreeMap;

use saiga_process::secret;
use saiga_redis::remote::Remote;
use saiga_tpcc::db::connect::connect;
use saiga_tpcc::db::options::Options;
use saiga_tpcc::db::rows::Rows;
use saiga_tpcc::props::{Engine, Props};

/// Variables that differ from start to start with equal settings.
const VOLATILE: [&str; 12] = [
    "gtid_binlog_pos",
    "gtid_binlog_state",
    "gtid_current_pos",
    "gtid_executed",
    "gtid_purged",
    "hostname",
    "innodb_buffer_pool_load_pages_abort",
    "last_insert_id",
    "server_uid",
    "server_uuid",
    "timestamp",
    "uptime",
];
/// Maximum length of a value, in characters; longer values are cut.
const MAX_LENGTH: usize = 200;

/// Ends of the settings that contain the version of MySQL, MariaDB, PostgreSQL and openGauss.
const VERSIONS: [&str; 2] = [".version", ".server_version"];

/// A server has another version than in the earlier runs of its campaign.
#[derive(Debug, thiserror::Error)]
#[error(
    "the campaign was begun with {name} {before}, but the server now has {now}; resume with the \
     server of the earlier runs, or choose another --out"
)]
pub(crate) struct VersionChanged {
    name: String,
    before: String,
    now: String,
}

/// The settings of the database of a props file; SQLite has none.
///
/// # Errors
/// Returns a message with the server's address and the cause.
pub(crate) fn of_database(props: &Props) -> Result<BTreeMap<String, String>, String> {
    let url = &props.url;
    let sql = match url.engine {
        Engine::Sqlite => return Ok(BTreeMap::new()),
        Engine::MySql => "show global variables",
        Engine::Postgres | Engine::OpenGauss => "select name, setting from pg_settings",
    };
    let message = |error: &dyn std::fmt::Display| {
        format!(
            "cannot read the settings of {}:{}: {error}",
            url.host, url.port
        )
    };
    let options = Options::of(url).map_err(|error| message(&error))?;
    let session = connect(url, &props.user, &props.password, &options);
    let mut session = session.map_err(|error| message(&error))?;
    let mut rows = Rows::new();
    session
        .run(sql, &mut rows)
        .map_err(|error| message(&error))?;
    let mut all = BTreeMap::new();
    for row in 0..rows.len() {
        let field = |column| rows.shown(row, column).map_err(|error| message(&error));
        all.insert(field(0)?, field(1)?);
    }
    Ok(reportable(all))
}

/// The settings of the Redis server on a port of this machine.
///
/// # Errors
/// Returns a message with the port and the cause.
pub(crate) fn of_redis(port: u16) -> Result<BTreeMap<String, String>, String> {
    let all = Remote::at(port).settings();
    let message = |error| format!("cannot read the settings of the server on port {port}: {error}");
    all.map(reportable).map_err(message)
}

/// Checks that the versions in the settings of an arm's servers did not change.
///
/// # Errors
/// Returns the first version that changed.
pub(crate) fn check_versions(
    before: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
) -> Result<(), VersionChanged> {
    let is_version = |name: &str| VERSIONS.iter().any(|end| name.ends_with(end));
    let mut versions = before.iter().filter(|(name, _)| is_version(name));
    let changed = versions.find_map(|(name, before)| {
        let now = now.get(name).filter(|now| *now != before)?;
        Some((name, before, now))
    });
    match changed {
        None => Ok(()),
        Some((name, before, now)) => Err(VersionChanged {
            name: name.clone(),
            before: before.clone(),
            now: now.clone(),
        }),
    }
}

/// Removes volatile variables and secrets, and masks and shortens values.
fn reportable(mut all: BTreeMap<String, String>) -> BTreeMap<String, String> {
    all.retain(|name, _| !VOLATILE.contains(&name.as_str()) && !secret::is_secret(name));
    for (name, value) in &mut all {
        *value = secret::value(name, value);
        if let Some((cut, _)) = value.char_indices().nth(MAX_LENGTH) {
            value.truncate(cut);
            value.push_str("...");
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volatile_variables_and_secrets_are_not_reported() {
        let named = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let all = BTreeMap::from([
            named("requirepass", "hunter2"),
            named("masterauth", "hunter2"),
            named("primary_conninfo", "user=rep password=hunter2"),
            named("timestamp", "1"),
            named("port", "7"),
            named("long", &"é".repeat(201)),
        ]);
        let kept = reportable(all);
        let names: Vec<&String> = kept.keys().collect();
        assert_eq!(names, ["long", "port", "primary_conninfo"]);
        assert_eq!(kept["primary_conninfo"], "user=rep password=***");
        assert_eq!(kept["long"], format!("{}...", "é".repeat(200)));
    }

    #[test]
    fn a_changed_server_version_is_an_error() {
        let settings = |version: &str, buffer: &str| {
            BTreeMap::from([
                ("db.version".to_owned(), version.to_owned()),
                ("db.innodb_buffer_pool_size".to_owned(), buffer.to_owned()),
            ])
        };
        let before = settings("8.0.36", "1");
        assert!(check_versions(&before, &settings("8.0.36", "2")).is_ok());
        let other = check_versions(&before, &settings("8.0.40", "1")).unwrap_err();
        assert!(
            other
                .to_string()
                .contains("db.version 8.0.36, but the server now has 8.0.40"),
            "{other}"
        );
    }
}
