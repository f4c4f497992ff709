//! Database access for terminals and loaders: sessions, statements, values and rows.
//!
//! A [`Session`] is one connection. It sends one [`Statement`] per call, as BenchmarkSQL does. So a
//! run measures the path between client and server, not the body of a stored procedure.
//! Deliberately absent: the logic of transactions (`transactions`), and the number of sessions
//! (`driver`).

pub mod connect;
mod encryption;
mod mysql;
pub mod options;
pub mod postgres;
pub mod rows;
pub mod sqlite;
pub mod statement;
mod stream;
pub mod tls;
pub mod value;

use std::time::Duration;

use saiga_document::number;

use crate::population::Sink;
use crate::props::Engine;
use crate::table::Table;
use rows::Rows;
use statement::Statement;
use value::Value;

/// One connection. The first statement starts a transaction implicitly.
pub trait Session: Send {
    /// The database system at the other end, with its version and isolation level.
    fn server(&self) -> &Server;

    /// Executes a statement inside a transaction and reads the complete answer, in one round trip.
    /// Clears `rows`, then stores the selected rows there. Returns the number of rows found or
    /// changed.
    ///
    /// # Errors
    /// [`SqlError`]. The caller must then roll back the transaction.
    fn execute(
        &mut self,
        statement: Statement,
        params: &[Value<'_>],
        rows: &mut Rows,
    ) -> Result<u64, SqlError>;

    /// Executes a statement once per `statement.params()` values of `params`. Uses as few round
    /// trips as JDBC's `executeBatch` with the same settings. Returns the number of rows changed.
    ///
    /// # Errors
    /// [`SqlError`]. The caller must then roll back the transaction.
    fn batch(&mut self, statement: Statement, params: &[Value<'_>]) -> Result<u64, SqlError>;

    /// Commits the transaction.
    ///
    /// # Errors
    /// [`SqlError`]. After [`SqlError::Lost`], it is unknown whether the commit took effect.
    fn commit(&mut self) -> Result<(), SqlError>;

    /// Rolls back the transaction.
    ///
    /// # Errors
    /// [`SqlError::Lost`]. In that case, the server rolls back on its own.
    fn rollback(&mut self) -> Result<(), SqlError>;

    /// Executes any SQL without parameters outside a transaction, and commits it.
    ///
    /// # Errors
    /// [`SqlError`].
    fn run(&mut self, sql: &str, rows: &mut Rows) -> Result<u64, SqlError>;

    /// Loads rows into `table` by the fastest method of the system. `fill` writes the values in the
    /// order of [`Table::columns`]. The load is one transaction of its own: either all rows are
    /// stored or none.
    ///
    /// # Errors
    /// [`SqlError`], including errors of `fill`.
    fn load(
        &mut self,
        table: Table,
        fill: &mut dyn FnMut(&mut dyn Sink<Error = SqlError>) -> Result<(), SqlError>,
    ) -> Result<(), SqlError>;

    /// Why the last [`load`](Self::load) used a slower method than other servers of this system
    /// allow, and how to enable the faster one. `None` if the load was not slow.
    fn slow_load(&self) -> Option<&'static str> {
        None
    }

    /// The server's own counters since its start, under the server's names. Empty if the system has
    /// no counters.
    ///
    /// # Errors
    /// [`SqlError`].
    fn status(&mut self) -> Result<Vec<(String, f64)>, SqlError> {
        Ok(Vec::new())
    }
}

/// The database system of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub engine: Engine,
    /// Name and version: `MariaDB 10.11.6`, `PostgreSQL 15.8`, `SQLite 3.50.2`.
    pub version: String,
    /// The isolation level of the session, in the system's own words: `REPEATABLE-READ`.
    pub isolation: String,
}

/// Why a statement failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SqlError {
    /// A deadlock, a lock wait timeout or a serialization failure. The same transaction may succeed
    /// when it is retried.
    #[error("{said}")]
    Conflict {
        /// The server's message, with its code.
        said: String,
    },
    /// The connection is broken, or the server is shutting down.
    #[error("the connection is lost: {said}")]
    Lost {
        /// The cause.
        said: String,
    },
    /// The server refused the statement.
    #[error("{said} (in: {sql})")]
    Refused {
        /// The server's code: SQLSTATE, or MySQL's number.
        code: String,
        /// The server's message, with its code.
        said: String,
        /// The beginning of the statement.
        sql: String,
    },
    /// The answer does not fit the statement: a value has another type, or a row is missing.
    #[error("{what}")]
    Unexpected {
        /// The mismatch.
        what: String,
    },
}

/// Why no session could be opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No server answers at this address.
    #[error(
        "cannot reach {engine} at {address}: {error}; is the server running, and on this port?"
    )]
    Unreachable {
        engine: Engine,
        /// Host and port, or a file.
        address: String,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The server accepts connections, but a later step does not finish in time.
    #[error(
        "{engine} at {address} accepts connections, but does not complete {step} within {}; is the server \
         frozen or overloaded, or another program on this port?",
        number::seconds(.limit.as_secs_f64())
    )]
    Stuck {
        engine: Engine,
        /// Host and port, or a file.
        address: String,
        /// The TLS handshake, or the log-in.
        step: &'static str,
        /// The time limit.
        limit: Duration,
    },
    /// The server rejects the user or the password.
    #[error("{engine} at {address} rejects user {user:?}: {said}; check user= and password=")]
    Login {
        engine: Engine,
        /// Host and port.
        address: String,
        /// The user name from the configuration.
        user: String,
        /// The server's message.
        said: String,
    },
    /// The database of the URL does not exist, or this user has no access to it.
    #[error(
        "{engine} at {address} has no database {database:?} for this user: {said}; create it, or correct conn="
    )]
    Database {
        engine: Engine,
        /// Host and port.
        address: String,
        /// The database name from the URL.
        database: String,
        /// The server's message.
        said: String,
    },
    /// The server refuses for another reason: too many connections, starting up, shutting down.
    #[error("{engine} at {address} refuses the connection: {said}")]
    Refused {
        engine: Engine,
        /// Host and port.
        address: String,
        /// The server's message.
        said: String,
        /// Whether a later attempt may succeed.
        for_now: bool,
    },
    /// The connection cannot be encrypted as requested.
    #[error("no TLS with {engine} at {address}: {said}; {instead}")]
    Tls {
        engine: Engine,
        /// Host and port.
        address: String,
        /// The error, and which side it concerns.
        said: String,
        /// How to solve it.
        instead: String,
    },
    /// The server requires something that is not supported.
    #[error("{engine} at {address} requires {what}, which is not supported; {instead}")]
    Unsupported {
        engine: Engine,
        /// Host and port.
        address: String,
        /// An authentication method, or encryption.
        what: String,
        /// How to solve it.
        instead: String,
    },
}

/// A statement on one line, cut off after 100 characters.
fn beginning(sql: &str) -> String {
    const LENGTH: usize = 100;
    let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{} ...", &line[..end]),
        None => line,
    }
}
