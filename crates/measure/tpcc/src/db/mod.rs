//! What terminals and loads need of a database: sessions, statements, values and rows.
//!
//! A [`Session`] is one connection. It sends one [`Statement`] for each call, as BenchmarkSQL
//! does, so that the path between client and server is measured and not a procedure's body.
//! Deliberately absent: transactions (`transactions`), and who opens how many sessions (`driver`).

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

/// One connection. A transaction begins by itself with its first statement.
pub trait Session: Send {
    /// Which system it speaks to, and what that says about itself.
    fn server(&self) -> &Server;

    /// Sends a statement of a transaction and reads its whole answer, in one round trip. `rows` is
    /// emptied, then gets what the statement selects. The number of rows found or changed.
    ///
    /// # Errors
    /// [`SqlError`]; the transaction is to be rolled back.
    fn execute(
        &mut self,
        statement: Statement,
        params: &[Value<'_>],
        rows: &mut Rows,
    ) -> Result<u64, SqlError>;

    /// Sends a statement once for each `statement.params()` values of `params`, in as few round trips as JDBC's
    /// `executeBatch` takes with the same settings. The number of rows changed.
    ///
    /// # Errors
    /// [`SqlError`]; the transaction is to be rolled back.
    fn batch(&mut self, statement: Statement, params: &[Value<'_>]) -> Result<u64, SqlError>;

    /// Ends the transaction, and keeps what it did.
    ///
    /// # Errors
    /// [`SqlError`]. After [`SqlError::Lost`] nobody knows whether it was kept.
    fn commit(&mut self) -> Result<(), SqlError>;

    /// Ends the transaction, and undoes what it did.
    ///
    /// # Errors
    /// [`SqlError::Lost`]: the server undoes it by itself then.
    fn rollback(&mut self) -> Result<(), SqlError>;

    /// Runs any SQL without parameters outside a transaction: what it does stays.
    ///
    /// # Errors
    /// [`SqlError`].
    fn run(&mut self, sql: &str, rows: &mut Rows) -> Result<u64, SqlError>;

    /// Loads rows into `table` in the way that is fastest for the system. `fill` writes them, in the
    /// order of [`Table::columns`]. Ends a transaction of its own, so all of it stays, or
    /// nothing.
    ///
    /// # Errors
    /// [`SqlError`], that of `fill` included.
    fn load(
        &mut self,
        table: Table,
        fill: &mut dyn FnMut(&mut dyn Sink<Error = SqlError>) -> Result<(), SqlError>,
    ) -> Result<(), SqlError>;

    /// Why the last [`load`](Self::load) was not as fast as with other servers of its kind, and what
    /// makes it so.
    fn slow_load(&self) -> Option<&'static str> {
        None
    }

    /// The server's own counters since its start, by the names that it gives them; none where it
    /// has none.
    ///
    /// # Errors
    /// [`SqlError`].
    fn status(&mut self) -> Result<Vec<(String, f64)>, SqlError> {
        Ok(Vec::new())
    }
}

/// The system at the other end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub engine: Engine,
    /// As it calls itself: `MariaDB 10.11.6`, `PostgreSQL 15.8`, `SQLite 3.50.2`.
    pub version: String,
    /// The isolation level of its transactions, as it calls it: `REPEATABLE-READ`.
    pub isolation: String,
}

/// Why a statement failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SqlError {
    /// A deadlock, a lock that was waited for too long, or a serialisation failure: nobody's
    /// mistake. The same transaction may succeed when it is tried again.
    #[error("{said}")]
    Conflict {
        /// The server's words, with its code.
        said: String,
    },
    /// The connection is gone, or the server is going.
    #[error("the connection is lost: {said}")]
    Lost {
        /// What was seen of it.
        said: String,
    },
    /// The server refused the statement.
    #[error("{said} (in: {sql})")]
    Refused {
        /// The server's code: SQLSTATE, or MySQL's number.
        code: String,
        /// The server's words, with its code.
        said: String,
        /// The beginning of the statement.
        sql: String,
    },
    /// An answer that is none to what was asked: a table has another type or lacks rows.
    #[error("{what}")]
    Unexpected {
        /// What is wrong with it.
        what: String,
    },
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nobody answers there.
    #[error(
        "cannot reach {engine} at {address}: {error}; is the server running, and on this port?"
    )]
    Unreachable {
        engine: Engine,
        /// Host and port, or a file.
        address: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// It accepts connections, and what is to be done then does not end.
    #[error(
        "{engine} at {address} accepts connections, but does not end {step} within {}; is the server \
         frozen or overloaded, or another program on this port?",
        number::seconds(.limit.as_secs_f64())
    )]
    Stuck {
        engine: Engine,
        /// Host and port, or a file.
        address: String,
        /// The TLS handshake, or the log-in.
        step: &'static str,
        /// How much time there was.
        limit: Duration,
    },
    /// User or password are not accepted.
    #[error(
        "{engine} at {address} does not let user {user:?} in: {said}; check user= and password="
    )]
    Login {
        engine: Engine,
        /// Host and port.
        address: String,
        /// As given.
        user: String,
        /// The server's words.
        said: String,
    },
    /// The database of the URL does not exist, or is not this user's.
    #[error(
        "{engine} at {address} has no database {database:?} for this user: {said}; create it, or correct conn="
    )]
    Database {
        engine: Engine,
        /// Host and port.
        address: String,
        /// As given.
        database: String,
        /// The server's words.
        said: String,
    },
    /// It refuses for another reason: too many connections, starting up, shutting down.
    #[error("{engine} at {address} refuses the connection: {said}")]
    Refused {
        engine: Engine,
        /// Host and port.
        address: String,
        /// The server's words.
        said: String,
        /// Whether it may let us in later.
        for_now: bool,
    },
    /// The connection cannot be encrypted as was asked.
    #[error("no TLS with {engine} at {address}: {said}; {instead}")]
    Tls {
        engine: Engine,
        /// Host and port.
        address: String,
        /// What is wrong with which side.
        said: String,
        /// What to do about it.
        instead: String,
    },
    /// It wants something that is not supported.
    #[error("{engine} at {address} wants {what}, which is not supported; {instead}")]
    Unsupported {
        engine: Engine,
        /// Host and port.
        address: String,
        /// A way of logging in, or encryption.
        what: String,
        /// What to do about it.
        instead: String,
    },
}

/// As much of a statement as fits into a line.
fn beginning(sql: &str) -> String {
    const LENGTH: usize = 100;
    let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{} ...", &line[..end]),
        None => line,
    }
}
