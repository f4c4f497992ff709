//! Statistics counters of the server.

use super::Postgres;
use crate::db::SqlError;
use crate::db::rows::Rows;

/// Views with counters, one row each. A server has only the views of its version.
const VIEWS: [(&str, &str); 4] = [
    ("pg_stat_database", "where datname = current_database()"),
    ("pg_stat_bgwriter", ""),
    ("pg_stat_checkpointer", ""),
    ("pg_stat_wal", ""),
];
/// OIDs of the types of counters: int8, int4, float8, numeric.
const NUMBERS: [u32; 4] = [20, 23, 701, 1700];
/// A number that is not a counter, because it can decrease.
const LEVEL: &str = "numbackends";

/// Sessions that wait for locks or execute a statement, and the lag of the replica that is farthest
/// behind, or of this server if it is one, in seconds. Since PostgreSQL 10.
const LEVELS: &str = "\
    select count(*) filter (where wait_event_type = 'Lock'), \
    count(*) filter (where state = 'active' and pid <> pg_backend_pid()), \
    greatest((select max(extract(epoch from replay_lag)) from pg_catalog.pg_stat_replication), \
        case when pg_is_in_recovery() \
            and pg_last_wal_receive_lsn() is distinct from pg_last_wal_replay_lsn() \
        then extract(epoch from now() - pg_last_xact_replay_timestamp()) else 0 end)::float8 \
    from pg_catalog.pg_stat_activity";
/// Names of these numbers.
const LEVEL_NAMES: [&str; 3] = [
    "pg_stat_activity.lock_wait_sessions",
    "pg_stat_activity.active_sessions",
    "replica_lag_s",
];
/// The column without which a server, such as openGauss, does not have them.
const HAS_LEVELS: &str = "\
    select 1 from pg_catalog.pg_attribute \
    where attrelid = 'pg_catalog.pg_stat_replication'::regclass and attname = 'replay_lag'";

/// Reads all counters, named like `pg_stat_database.xact_commit`.
pub(super) fn counters(session: &mut Postgres) -> Result<Vec<(String, f64)>, SqlError> {
    let (mut rows, mut all) = (Rows::new(), Vec::new());
    for view in present(session, &mut rows)? {
        let condition = VIEWS.iter().find(|(name, _)| *name == view);
        let condition = condition.map_or("", |(_, condition)| condition);
        let sql = format!("select * from pg_catalog.{view} {condition}");
        let columns = session.simple(&sql, &mut rows)?.columns;
        if rows.is_empty() {
            continue;
        }
        for (at, (name, oid)) in columns.iter().enumerate() {
            if NUMBERS.contains(oid) && name != LEVEL && !rows.is_null(0, at)? {
                let value = rows.text(0, at)?.parse();
                let what = || format!("{view}.{name} is not a number");
                let value = value.map_err(|_| SqlError::Unexpected { what: what() })?;
                all.push((format!("{view}.{name}"), value));
            }
        }
    }
    session.simple(HAS_LEVELS, &mut rows)?;
    if !rows.is_empty() {
        session.simple(LEVELS, &mut rows)?;
        for (at, name) in LEVEL_NAMES.iter().enumerate() {
            let value = rows
                .text(0, at)?
                .parse()
                .map_err(|_| SqlError::Unexpected {
                    what: format!("{name} is not a number"),
                })?;
            all.push(((*name).to_owned(), value));
        }
    }
    Ok(all)
}

/// The views that the server has.
fn present(session: &mut Postgres, rows: &mut Rows) -> Result<Vec<String>, SqlError> {
    let names = VIEWS.map(|(name, _)| format!("'{name}'")).join(", ");
    let sql = format!(
        "select c.relname from pg_catalog.pg_class c \
         join pg_catalog.pg_namespace n on n.oid = c.relnamespace \
         where n.nspname = 'pg_catalog' and c.relname in ({names}) order by c.relname"
    );
    session.simple(&sql, rows)?;
    let names = (0..rows.len()).map(|row| rows.text(row, 0).map(str::to_owned));
    names.collect()
}
