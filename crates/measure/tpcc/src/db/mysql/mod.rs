//! MySQL and MariaDB, with our own client (ADR 22 says why).
//!
//! A session uses a few KiB, an answer is parsed from the receive buffer directly into [`Rows`],
//! and `LOAD DATA LOCAL` streams rows as they are generated. Deliberately absent: compression, time
//! zones, and authentication other than by password.

mod answer;
mod bulk;
mod fault;
mod fields;
mod greeting;
mod link;
mod login;
mod open;
mod parts;
mod prepared;
mod public_key;
mod scramble;
mod status;
mod values;
mod wire;

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use fault::Fault;
use link::Link;
use prepared::Store;

use super::options::{Options, Protocol};
use super::rows::Rows;
use super::statement::Statement;
use super::value::Value;
use super::{ConnectError, Server, Session, SqlError};
use crate::population::Sink;
use crate::props::{Password, Url};
use crate::table::Table;

/// Maximum number of rows of one folded INSERT, and of commands in one write. A larger batch is
/// split. A TPC-C transaction needs at most 15. The answers to this many commands fit into a socket
/// buffer, so client and server never wait for each other.
const MOST_AT_ONCE: usize = 128;
/// A batch that cannot be folded is sent one statement at a time if it has at most this many.
const MOST_ONE_BY_ONE: usize = 3;

/// Connects and logs in.
pub(super) fn connect(
    url: &Url,
    user: &str,
    password: &Password,
    options: &Options,
) -> Result<Box<dyn Session>, ConnectError> {
    let (link, server) = open::open(url, user, password.reveal(), options)?;
    Ok(Box::new(MySql {
        address: options.address(url),
        link,
        server,
        protocol: options.protocol,
        folds_inserts: options.folds_inserts,
        prepared: Store::default(),
        form: None,
        is_replica: None,
        lost: None,
    }))
}

/// A session with a MySQL or MariaDB server.
#[derive(Debug)]
struct MySql {
    address: String,
    link: Link,
    server: Server,
    protocol: Protocol,
    folds_inserts: bool,
    prepared: Store,
    /// The method of loading rows; known after the first load.
    form: Option<bulk::Form>,
    /// Whether the server is a replica whose lag this user may see; known after the first status.
    is_replica: Option<bool>,
    /// The reason why the connection is lost.
    lost: Option<String>,
}

impl MySql {
    /// Runs `ask` if the connection is not lost, and converts its error.
    fn ask<T>(
        &mut self,
        sql: &str,
        ask: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<T, SqlError> {
        if let Some(said) = &self.lost {
            return Err(SqlError::Lost { said: said.clone() });
        }
        ask(self).map_err(|fault| {
            let ends = fault.ends_session();
            let error = fault.into_sql_error(&self.address, sql);
            if let (true, SqlError::Lost { said }) = (ends, &error) {
                self.lost = Some(said.clone());
            }
            error
        })
    }

    fn command(&mut self, sql: &str) -> Result<(), SqlError> {
        self.ask(sql, |it| it.link.command(sql)).map(|_| ())
    }

    /// Sends one statement. If `folds` is greater than 1, it is an INSERT of `folds` rows.
    fn send(
        &mut self,
        statement: Statement,
        folds: usize,
        values: &[Value<'_>],
        rows: &mut Rows,
    ) -> Result<u64, SqlError> {
        let sql = prepared::text_of(statement);
        if values.len() != folds * prepared::params_of(statement) {
            let what = format!("{} values for {statement:?}, {folds} times", values.len());
            return Err(SqlError::Unexpected { what });
        }
        let end = self.ask(sql, |it| {
            if it.protocol == Protocol::Prepared
                && let Some(prepared) = it.prepared.get(&mut it.link, statement, folds)?
            {
                return it.link.execute(prepared, values, rows);
            }
            match folds {
                1 => it.link.query(sql, values, rows),
                _ => it.link.query(&prepared::folded(sql, folds), values, rows),
            }
        })?;
        Ok(end.rows)
    }

    /// Sends a statement that cannot be folded once per `width` values, in one write. Returns
    /// `None` if the statements must be sent one at a time.
    fn send_all(
        &mut self,
        statement: Statement,
        width: usize,
        values: &[Value<'_>],
    ) -> Result<Option<u64>, SqlError> {
        let is_apt = self.protocol == Protocol::Prepared && values.len().is_multiple_of(width);
        if !is_apt || values.len() / width <= MOST_ONE_BY_ONE {
            return Ok(None);
        }
        self.ask(prepared::text_of(statement), |it| {
            match it.prepared.get(&mut it.link, statement, 1)? {
                Some(prepared) => it.link.execute_all(prepared, width, values).map(Some),
                None => Ok(None),
            }
        })
    }
}

impl Session for MySql {
    fn server(&self) -> &Server {
        &self.server
    }

    fn execute(
        &mut self,
        statement: Statement,
        params: &[Value<'_>],
        rows: &mut Rows,
    ) -> Result<u64, SqlError> {
        rows.clear();
        self.send(statement, 1, params, rows)
    }

    /// As in Connector/J, `rewriteBatchedStatements` folds INSERTs and sends more than three other
    /// statements together; without it, statements are sent one at a time. Connector/J sends other
    /// statements together as one text. Here they stay prepared, and statements that are not
    /// prepared are sent one at a time.
    fn batch(&mut self, statement: Statement, params: &[Value<'_>]) -> Result<u64, SqlError> {
        let width = prepared::params_of(statement);
        let folds = self.folds_inserts && prepared::inserts(statement);
        let mut rows = Rows::new();
        let mut changed = 0;
        for part in params.chunks(width * MOST_AT_ONCE) {
            if self.folds_inserts
                && !folds
                && let Some(count) = self.send_all(statement, width, part)?
            {
                changed += count;
                continue;
            }
            let most = if folds { MOST_AT_ONCE } else { 1 };
            for values in part.chunks(width * most) {
                changed += self.send(statement, values.len() / width, values, &mut rows)?;
            }
        }
        Ok(changed)
    }

    fn commit(&mut self) -> Result<(), SqlError> {
        self.command("commit")
    }

    fn rollback(&mut self) -> Result<(), SqlError> {
        self.command("rollback")
    }

    fn run(&mut self, sql: &str, rows: &mut Rows) -> Result<u64, SqlError> {
        rows.clear();
        match self.ask(sql, |it| it.link.query_as_written(sql, rows)) {
            Ok(end) => {
                self.commit()?;
                Ok(end.rows)
            }
            Err(error) => Err(self.undone(error)),
        }
    }

    fn load(
        &mut self,
        table: Table,
        fill: &mut dyn FnMut(&mut dyn Sink<Error = SqlError>) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        self.command(bulk::WITHOUT_CHECKS)?;
        let loaded = match bulk::load(self, table, fill) {
            Ok(()) => self.commit(),
            Err(error) => Err(self.undone(error)),
        };
        // A lost session has no settings to restore.
        let restored = self.command(bulk::WITH_CHECKS);
        loaded.and(restored)
    }

    fn slow_load(&self) -> Option<&'static str> {
        (self.form == Some(bulk::Form::Insert)).then_some(
            "the server does not allow LOAD DATA LOCAL, so rows go as INSERTs, which is slower; \
             `set global local_infile = 1` allows it",
        )
    }

    fn status(&mut self) -> Result<Vec<(String, f64)>, SqlError> {
        let mut sql = "show global status where variable_name in (".to_owned();
        for (at, name) in status::COUNTERS.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            // Writing to a string cannot fail.
            let _ = write!(sql, "{comma}'{name}'");
        }
        sql.push(')');
        let mut rows = Rows::new();
        self.ask(&sql, |it| it.link.query_as_written(&sql, &mut rows))?;
        let mut all = status::counters(&rows)?;
        if self.is_replica != Some(false) {
            let lag = self.replica_lag(&mut rows)?;
            self.is_replica.get_or_insert(lag.is_some());
            all.extend(lag.map(|lag_s| (status::REPLICA_LAG.to_owned(), lag_s)));
        }
        Ok(all)
    }
}

impl MySql {
    /// Seconds by which this server is behind its source, NaN while that is unknown. `None` if it
    /// is not a replica, is older than the statement, or the user lacks the right to ask.
    fn replica_lag(&mut self, rows: &mut Rows) -> Result<Option<f64>, SqlError> {
        let sql = "show replica status";
        rows.clear();
        match self.ask(sql, |it| it.link.query_as_written(sql, rows)) {
            Ok(_) => Ok(status::replica_lag(rows)),
            Err(error @ SqlError::Lost { .. }) => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// Rolls back after a failed call and returns its error. After a lock wait timeout, InnoDB
    /// itself rolls back only the statement.
    fn undone(&mut self, error: SqlError) -> SqlError {
        match self.rollback() {
            // The first error is the cause. A lost session is reported by the next call.
            Ok(()) | Err(_) => error,
        }
    }
}
