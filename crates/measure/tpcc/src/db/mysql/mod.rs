//! MySQL and MariaDB, by a client of our own.
//!
//! The `mysql` crate keeps 4 MiB for each connection, which 800 terminals cannot afford. Here a
//! session has some KiB, an answer goes from the socket's buffer straight into [`Rows`], and `LOAD
//! DATA LOCAL` streams rows as they are made. Deliberately absent: compression, time zones, log-ins
//! other than by a password.

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

/// Rows of one folded INSERT, and commands of one write; a batch of more becomes several. TPC-C has
/// fifteen at most. The answers of so many commands fit into a socket's buffer, so a server never
/// waits for us to read while we wait for it.
const MOST_AT_ONCE: usize = 128;
/// A batch of no more statements than this goes one by one where they cannot be folded.
const MOST_ONE_BY_ONE: usize = 3;

/// Logs in.
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
        lost: None,
    }))
}

/// A session.
#[derive(Debug)]
struct MySql {
    address: String,
    link: Link,
    server: Server,
    protocol: Protocol,
    folds_inserts: bool,
    prepared: Store,
    /// How rows are loaded; known after the first load.
    form: Option<bulk::Form>,
    /// Why nothing can be asked any more.
    lost: Option<String>,
}

impl MySql {
    /// Asks the server, if it is still there.
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

    /// Sends one statement: `values` for `folds` times its parameters, folded into one.
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

    /// Sends a statement that cannot be folded once for each `width` values, all at once; `None`
    /// where they must go one by one.
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

    /// As Connector/J: with `rewriteBatchedStatements` INSERTs are folded, and more than three of
    /// anything else go at once, else one by one. Connector/J sends those as one text; here they
    /// stay prepared, and what is not prepared goes one by one.
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
        // A session that is lost has no settings.
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
        status::counters(&rows)
    }
}

impl MySql {
    /// Undoes what a failed call has done. InnoDB itself undoes only the statement when a lock was
    /// waited for too long.
    fn undone(&mut self, error: SqlError) -> SqlError {
        match self.rollback() {
            // The first error is what happened; that the session is lost, too, shows at once.
            Ok(()) | Err(_) => error,
        }
    }
}
