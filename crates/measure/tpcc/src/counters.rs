//! Reads the counters of a database during a run, over a separate connection.
//!
//! The sampler reads this source in a separate thread, so neither the terminals nor the rows about
//! the host wait for the database. Only counters are read, outside of transactions.

use saiga_sampler::status::{Kind, ReadError, StatusSource, Variable};

use crate::db::Session;
use crate::driver::connection::Sessions;
use crate::props::Engine;

/// Status variables that can also decrease.
const LEVELS: [&str; 7] = [
    "Threads_connected",
    "Threads_running",
    "Innodb_buffer_pool_pages_dirty",
    "Innodb_row_lock_current_waits",
    "pg_stat_activity.lock_wait_sessions",
    "pg_stat_activity.active_sessions",
    "replica_lag_s",
];
/// Seconds since the start of the server. Left out, because its rate is always 1.
const CLOCK: &str = "Uptime";
/// Common prefix of PostgreSQL's views; the names of variables leave it out.
const PREFIX: &str = "pg_stat_";

/// The counters of one database.
pub struct DatabaseStatus {
    label: String,
    sessions: Sessions,
    /// `None` after a failed read, until the next read connects again.
    session: Option<Box<dyn Session>>,
    /// The names that the server uses, in the order of `variables`.
    names: Vec<String>,
    variables: Vec<Variable>,
}

impl DatabaseStatus {
    /// Connects and reads the names of the counters. Returns `None` if the database has none, such
    /// as SQLite. `number` distinguishes several databases of one system.
    ///
    /// # Errors
    /// The connection failed, or the server did not return its counters.
    pub fn open(sessions: Sessions, number: usize) -> Result<Option<Self>, ReadError> {
        if sessions.url.engine == Engine::Sqlite {
            return Ok(None);
        }
        let mut session = sessions.session()?;
        let mut names: Vec<String> = session
            .status()?
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        names.retain(|name| name != CLOCK);
        if names.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self {
            label: label(sessions.url.engine, number),
            sessions,
            session: Some(session),
            variables: names.iter().map(|name| variable(name)).collect(),
            names,
        }))
    }
}

impl StatusSource for DatabaseStatus {
    fn label(&self) -> &str {
        &self.label
    }

    fn names(&self) -> &[Variable] {
        &self.variables
    }

    fn read(&mut self) -> Result<Vec<f64>, ReadError> {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => self.sessions.session()?,
        };
        let values = session.status()?;
        // Kept only after a successful read: after an error the state of the session is unknown.
        self.session = Some(session);
        Ok(in_order(&self.names, &values))
    }
}

/// The label of a database, such as `mysql` or `postgres2`.
fn label(engine: Engine, number: usize) -> String {
    let name = match engine {
        Engine::MySql => "mysql",
        Engine::Postgres => "postgres",
        Engine::OpenGauss => "opengauss",
        Engine::Sqlite => "sqlite",
    };
    match number {
        1 => name.to_owned(),
        number => format!("{name}{number}"),
    }
}

fn variable(name: &str) -> Variable {
    Variable {
        name: name.strip_prefix(PREFIX).unwrap_or(name).to_owned(),
        kind: if LEVELS.contains(&name) {
            Kind::Gauge
        } else {
            Kind::Counter
        },
    }
}

/// The values in the order of `names`; NaN for a counter that the server left out.
fn in_order(names: &[String], values: &[(String, f64)]) -> Vec<f64> {
    let value = |name: &String| {
        let found = values.iter().find(|(known, _)| known == name);
        found.map_or(f64::NAN, |(_, value)| *value)
    };
    names.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_become_rates_and_levels_do_not() {
        for (name, expected, kind) in [
            ("Innodb_log_writes", "Innodb_log_writes", Kind::Counter),
            ("Threads_running", "Threads_running", Kind::Gauge),
            (
                "pg_stat_activity.active_sessions",
                "activity.active_sessions",
                Kind::Gauge,
            ),
            (
                "pg_stat_database.blks_read",
                "database.blks_read",
                Kind::Counter,
            ),
        ] {
            let found = variable(name);
            assert_eq!((found.name.as_str(), found.kind), (expected, kind));
        }
        assert_eq!(label(Engine::MySql, 1), "mysql");
        assert_eq!(label(Engine::Postgres, 2), "postgres2");
    }

    #[test]
    fn values_are_in_the_order_of_names_and_missing_ones_are_unknown() {
        let names = ["a", "b", "c"].map(str::to_owned);
        let values = [("c".to_owned(), 3.0), ("a".to_owned(), 1.0)];
        let found = in_order(&names, &values);
        assert_eq!((found[0], found[2]), (1.0, 3.0));
        assert!(found[1].is_nan());
    }
}
