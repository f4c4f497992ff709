//! SQLite: a database in a file, without a server.
//!
//! The journal is in WAL mode, and every commit is written to the disk. The sessions of a process
//! write one at a time, in the order of their requests. A session that waits for more than ten
//! seconds gets a conflict. Dates are integers. Money is floating point and is rounded to cents in
//! every comparison.

mod bind;
mod insert;
mod turns;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, Statement as Prepared};

use super::rows::Rows;
use super::statement::Statement;
use super::value::Value;
use super::{ConnectError, Server, Session, SqlError, beginning};
use crate::population::Sink;
use crate::props::{Engine, Url};
use crate::table::Table;
use insert::Inserter;
use turns::{Turn, Turns};

/// Maximum time that a session waits for its turn to write.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection to a database file.
#[derive(Debug)]
pub struct Sqlite {
    connection: Connection,
    server: Server,
    turns: Arc<Turns>,
    /// Maximum time to wait for the turn.
    patience: Duration,
    /// Held while a transaction is open, and while the connection closes: dropped after it.
    turn: Option<Turn>,
    /// Whether the journal mode is set. Setting it writes to the file, so it is done at the first
    /// write.
    is_ready: bool,
}

impl Sqlite {
    /// Opens a database file. A missing file is created when the first table is created.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn open(url: &Url) -> Result<Self, ConnectError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let open = || {
            let connection = Connection::open_with_flags(&url.database, flags)?;
            connection.busy_timeout(PATIENCE)?;
            connection.set_prepared_statement_cache_capacity(2 * Statement::COUNT);
            // The first query fails if the file is not a database.
            connection.query_row("select count(*) from sqlite_schema", [], |_| Ok(()))?;
            Ok(connection)
        };
        let connection = open().map_err(|error| unusable(&url.database, &error))?;
        Ok(Self {
            connection,
            server: Server {
                engine: Engine::Sqlite,
                version: format!("SQLite {}", rusqlite::version()),
                isolation: "SERIALIZABLE".to_owned(),
            },
            turns: Turns::at(&url.database),
            patience: PATIENCE,
            turn: None,
            is_ready: false,
        })
    }

    fn begin(&mut self) -> Result<(), SqlError> {
        if self.turn.is_some() {
            return Ok(());
        }
        let turn = self.turns.wait(self.patience);
        let turn = turn.ok_or_else(|| SqlError::Conflict {
            said: format!("others have written for {} s", self.patience.as_secs()),
        })?;
        self.make_ready()?;
        self.batch_of("begin immediate")?;
        self.turn = Some(turn);
        Ok(())
    }

    fn make_ready(&mut self) -> Result<(), SqlError> {
        if !self.is_ready {
            let sql = "pragma journal_mode = wal";
            let set = self.connection.query_row(sql, [], |_| Ok(()));
            set.map_err(|error| failed(&error, sql))?;
            self.is_ready = true;
        }
        Ok(())
    }

    fn end(&mut self, how: &str) -> Result<(), SqlError> {
        if self.turn.is_none() {
            return Ok(());
        }
        self.batch_of(how)?;
        self.turn = None;
        Ok(())
    }

    fn batch_of(&self, sql: &str) -> Result<(), SqlError> {
        let done = self.connection.execute_batch(sql);
        done.map_err(|error| failed(&error, sql))
    }
}

/// Sessions close one at a time. If several close at once, none of them is the last for SQLite, and
/// the journal stays. It would be replayed over a copy that is restored in place.
impl Drop for Sqlite {
    fn drop(&mut self) {
        let turn = self.turn.take();
        self.turn = turn.or_else(|| self.turns.wait(self.patience));
    }
}

impl Session for Sqlite {
    fn server(&self) -> &Server {
        &self.server
    }

    fn execute(
        &mut self,
        statement: Statement,
        params: &[Value<'_>],
        rows: &mut Rows,
    ) -> Result<u64, SqlError> {
        self.begin()?;
        rows.clear();
        let sql = statement.sql(Engine::Sqlite);
        let mut work = || {
            let mut prepared = self.connection.prepare_cached(&sql)?;
            bind::all(&mut prepared, params)?;
            step(&mut prepared, statement.selects(), rows)
        };
        work().map_err(|error| failed(&error, &sql))
    }

    fn batch(&mut self, statement: Statement, params: &[Value<'_>]) -> Result<u64, SqlError> {
        self.begin()?;
        let sql = statement.sql(Engine::Sqlite);
        let work = || {
            let mut prepared = self.connection.prepare_cached(&sql)?;
            let mut changed = 0;
            for row in params.chunks(statement.params()) {
                bind::all(&mut prepared, row)?;
                changed += prepared.raw_execute()? as u64;
            }
            Ok(changed)
        };
        work().map_err(|error| failed(&error, &sql))
    }

    fn commit(&mut self) -> Result<(), SqlError> {
        self.end("commit")
    }

    fn rollback(&mut self) -> Result<(), SqlError> {
        // After some errors, SQLite has already rolled back the transaction.
        if self.connection.is_autocommit() {
            self.turn = None;
        }
        self.end("rollback")
    }

    fn run(&mut self, sql: &str, rows: &mut Rows) -> Result<u64, SqlError> {
        rows.clear();
        let mut work = || {
            let mut prepared = self.connection.prepare(sql)?;
            let selects = prepared.column_count() > 0;
            step(&mut prepared, selects, rows)
        };
        work().map_err(|error| failed(&error, sql))
    }

    fn load(
        &mut self,
        table: Table,
        fill: &mut dyn FnMut(&mut dyn Sink<Error = SqlError>) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        self.begin()?;
        let filled = Inserter::new(&self.connection, table).and_then(|mut sink| fill(&mut sink));
        match filled {
            Ok(()) => self.commit(),
            Err(error) => {
                self.rollback()?;
                Err(error)
            }
        }
    }
}

/// Executes a statement with bound parameters. Returns the number of rows found or changed.
fn step(prepared: &mut Prepared<'_>, selects: bool, rows: &mut Rows) -> rusqlite::Result<u64> {
    if !selects {
        return Ok(prepared.raw_execute()? as u64);
    }
    let columns = prepared.column_count();
    let mut found = prepared.raw_query();
    while let Some(row) = found.next()? {
        for column in 0..columns {
            match row.get_ref(column)? {
                ValueRef::Null => rows.push_null(),
                ValueRef::Integer(value) => rows.push_int(value),
                ValueRef::Real(value) => rows.push_real(value),
                ValueRef::Text(text) | ValueRef::Blob(text) => rows.push_text(text),
            }
        }
        rows.end_row();
    }
    Ok(rows.len() as u64)
}

fn failed(error: &rusqlite::Error, sql: &str) -> SqlError {
    let said = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => SqlError::Conflict { said },
        Some(ErrorCode::CannotOpen | ErrorCode::SystemIoFailure | ErrorCode::NotADatabase) => {
            SqlError::Lost { said }
        }
        code => SqlError::Refused {
            code: code.map_or_else(String::new, |code| format!("{code:?}")),
            said,
            sql: beginning(sql),
        },
    }
}

fn unusable(path: &str, error: &rusqlite::Error) -> ConnectError {
    ConnectError::Unreachable {
        engine: Engine::Sqlite,
        address: path.to_owned(),
        error: io::Error::other(error.to_string()),
    }
}

#[cfg(test)]
mod tests;
