//! The settings of servers that run, as they say themselves.
//!
//! MySQL and MariaDB: `SHOW GLOBAL VARIABLES`; PostgreSQL and openGauss: `pg_settings`; Redis:
//! `CONFIG GET *`. Deliberately absent: servers of other loads, whose log-ins nobody has told us.

use std::collections::BTreeMap;

use saiga_experiment::secret;
use saiga_redis::remote::Remote;
use saiga_tpcc::db::connect::connect;
use saiga_tpcc::db::options::Options;
use saiga_tpcc::db::rows::Rows;
use saiga_tpcc::props::{Engine, Props};

/// What differs from start to start whatever anybody sets.
const OF_THE_MOMENT: [&str; 12] = [
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
/// Longer ones say nothing to a reader.
const LONGEST: usize = 200;

/// How the settings are named by which MySQL, MariaDB, PostgreSQL and openGauss tell their versions.
const VERSIONS: [&str; 2] = [".version", ".server_version"];

/// A campaign goes on, and its server has been replaced.
#[derive(Debug, thiserror::Error)]
#[error(
    "the campaign was begun with {name} {there}, and now it is {here}; go on with the server that \
     began it, or choose another --out"
)]
pub(crate) struct OtherVersion {
    name: String,
    there: String,
    here: String,
}

/// Those of the database of a props file; none of one that keeps to its file.
///
/// # Errors
/// What the server said, for people.
pub(crate) fn of_database(props: &Props) -> Result<BTreeMap<String, String>, String> {
    let url = &props.url;
    let sql = match url.engine {
        Engine::Sqlite => return Ok(BTreeMap::new()),
        Engine::MySql => "show global variables",
        Engine::Postgres | Engine::OpenGauss => "select name, setting from pg_settings",
    };
    let said = |error: &dyn std::fmt::Display| {
        format!(
            "{}:{} does not tell its settings: {error}",
            url.host, url.port
        )
    };
    let options = Options::of(url).map_err(|error| said(&error))?;
    let session = connect(url, &props.user, &props.password, &options);
    let mut session = session.map_err(|error| said(&error))?;
    let mut rows = Rows::new();
    session.run(sql, &mut rows).map_err(|error| said(&error))?;
    let mut all = BTreeMap::new();
    for row in 0..rows.len() {
        let field = |column| rows.shown(row, column).map_err(|error| said(&error));
        all.insert(field(0)?, field(1)?);
    }
    Ok(lasting(all))
}

/// Those of a Redis server.
///
/// # Errors
/// What the server said, for people.
pub(crate) fn of_redis(port: u16) -> Result<BTreeMap<String, String>, String> {
    let all = Remote::at(port).settings();
    let said = |error| format!("port {port} does not tell its settings: {error}");
    all.map(lasting).map_err(said)
}

/// A server is the one that the earlier runs of a campaign had, as far as it says so itself.
///
/// # Errors
/// The first version that is another one.
pub(crate) fn same_versions(
    before: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
) -> Result<(), OtherVersion> {
    let is_version = |name: &str| VERSIONS.iter().any(|end| name.ends_with(end));
    let mut versions = before.iter().filter(|(name, _)| is_version(name));
    let other = versions.find_map(|(name, there)| {
        let here = now.get(name).filter(|here| *here != there)?;
        Some((name, there, here))
    });
    match other {
        None => Ok(()),
        Some((name, there, here)) => Err(OtherVersion {
            name: name.clone(),
            there: there.clone(),
            here: here.clone(),
        }),
    }
}

fn lasting(mut all: BTreeMap<String, String>) -> BTreeMap<String, String> {
    all.retain(|name, _| !OF_THE_MOMENT.contains(&name.as_str()) && !secret::is_secret(name));
    for (name, value) in &mut all {
        *value = secret::value(name, value);
        if let Some((cut, _)) = value.char_indices().nth(LONGEST) {
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
    fn what_changes_by_itself_is_no_setting_and_secrets_are_none_of_a_report() {
        let named = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let all = BTreeMap::from([
            named("requirepass", "hunter2"),
            named("masterauth", "hunter2"),
            named("primary_conninfo", "user=rep password=hunter2"),
            named("timestamp", "1"),
            named("port", "7"),
            named("long", &"é".repeat(201)),
        ]);
        let kept = lasting(all);
        let names: Vec<&String> = kept.keys().collect();
        assert_eq!(names, ["long", "port", "primary_conninfo"]);
        assert_eq!(kept["primary_conninfo"], "user=rep password=***");
        assert_eq!(kept["long"], format!("{}...", "é".repeat(200)));
    }

    #[test]
    fn a_server_that_was_replaced_is_noticed() {
        let said = |version: &str, buffer: &str| {
            BTreeMap::from([
                ("db.version".to_owned(), version.to_owned()),
                ("db.innodb_buffer_pool_size".to_owned(), buffer.to_owned()),
            ])
        };
        let before = said("8.0.36", "1");
        assert!(same_versions(&before, &said("8.0.36", "2")).is_ok());
        let other = same_versions(&before, &said("8.0.40", "1")).unwrap_err();
        assert!(
            other
                .to_string()
                .contains("db.version 8.0.36, and now it is 8.0.40"),
            "{other}"
        );
    }
}
