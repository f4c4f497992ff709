//! The sample file: SQLite, one row per sample.
//!
//! Opened for each round and closed after it, so that a file that was moved, filled up or locked for a while matters
//! for that round only. A rollback journal and not a WAL: one file to copy, nothing for a reader to write, and
//! `synchronous=EXTRA` makes a sample that was reported one that survives a power cut. Counters are decimal text,
//! for SQLite's integers end at 63 bits.

mod error;
mod row;

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, TransactionBehavior};
use rustix::fs::{Access, AtFlags, CWD, accessat};

use crate::sample::{DriveId, Sample};
pub use error::StoreError;

/// Says in SQLite's header whose file it is: "SWAF".
const APPLICATION: i32 = 0x5357_4146;
/// The schema below. Version 1 had no wear.
const VERSION: i32 = 2;
const WITHOUT_WEAR: i32 = 1;
/// How long to wait for another watcher's row.
const PATIENCE: Duration = Duration::from_secs(1);

const SCHEMA: &str = "
    CREATE TABLE sample (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        unix_ms INTEGER NOT NULL,
        boot TEXT NOT NULL,
        since_boot_ms INTEGER NOT NULL,
        path TEXT NOT NULL,
        model TEXT NOT NULL,
        serial TEXT NOT NULL,
        endurance_group INTEGER,
        firmware TEXT NOT NULL,
        source TEXT NOT NULL,
        host_step TEXT NOT NULL,
        media_step TEXT NOT NULL,
        host_bytes TEXT NOT NULL,
        media_bytes TEXT NOT NULL,
        life_used_percent INTEGER,
        spare_percent INTEGER,
        spare_threshold_percent INTEGER,
        critical_warning INTEGER,
        life_host_bytes TEXT
    ) STRICT;
    CREATE INDEX sample_of_drive ON sample (model, serial, endurance_group, id);
";

const ADD_WEAR: &str = "
    ALTER TABLE sample ADD COLUMN life_used_percent INTEGER;
    ALTER TABLE sample ADD COLUMN spare_percent INTEGER;
    ALTER TABLE sample ADD COLUMN spare_threshold_percent INTEGER;
    ALTER TABLE sample ADD COLUMN critical_warning INTEGER;
    ALTER TABLE sample ADD COLUMN life_host_bytes TEXT;
";

/// An open sample file.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    connection: Connection,
    columns: &'static str,
}

/// What a file that can be used is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was written to it yet.
    New,
    /// An earlier release made it.
    WithoutWear,
    Current,
}

impl Store {
    /// Opens the file to put samples into; makes it, for its owner alone, when there is none.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let mut options = OpenOptions::new();
        match options.write(true).create_new(true).mode(0o600).open(path) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(StoreError::create(path, error)),
        }
        let mut store = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let prepared = store.prepare();
        prepared.map_err(|error| StoreError::sqlite(path, error))??;
        Ok(store)
    }

    /// Opens the file to read it. Who was killed in the middle of a sample left a journal, which is undone here.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        // SQLite's own complaint does not tell a missing file from one in a folder of somebody else.
        // And opening it here would end the locks of whoever in this process has it open.
        accessat(CWD, path, Access::READ_OK, AtFlags::EACCESS)
            .map_err(|error| StoreError::missing(path, error.into()))?;
        let mut store = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let fault = |error| StoreError::sqlite(path, error);
        match store.state().map_err(fault)?? {
            State::New => {}
            State::Current => return Ok(store),
            State::WithoutWear => {
                // Who reads may have no right to change the file.
                store.columns = row::COLUMNS_WITHOUT_WEAR;
                return Ok(store);
            }
        }
        let path = path.to_owned();
        if has_tables(&store.connection).map_err(fault)? {
            return Err(StoreError::Foreign { path });
        }
        Err(StoreError::Empty { path })
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self, StoreError> {
        let fault = |error| StoreError::sqlite(path, error);
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(fault)?;
        connection.busy_timeout(PATIENCE).map_err(fault)?;
        Ok(Self {
            path: path.to_owned(),
            connection,
            columns: row::COLUMNS,
        })
    }

    /// Gives an empty file its table, and an older one its new column. In one transaction: a file is
    /// as it was, or as it shall be, whenever this is killed.
    fn prepare(&mut self) -> rusqlite::Result<Result<(), StoreError>> {
        self.connection
            .pragma_update(None, "synchronous", "EXTRA")?;
        match self.state()? {
            Ok(State::Current) => return Ok(Ok(())),
            Ok(State::New | State::WithoutWear) => {}
            Err(error) => return Ok(Err(error)),
        }
        let path = self.path.clone();
        let change = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Exclusive)?;
        // Another watcher may have been first.
        match state(&change, &path)? {
            Ok(State::New) if has_tables(&change)? => {
                return Ok(Err(StoreError::Foreign { path }));
            }
            Ok(State::New) => change.execute_batch(SCHEMA)?,
            Ok(State::WithoutWear) => change.execute_batch(ADD_WEAR)?,
            Ok(State::Current) => return Ok(Ok(())),
            Err(error) => return Ok(Err(error)),
        }
        change.pragma_update(None, "application_id", APPLICATION)?;
        change.pragma_update(None, "user_version", VERSION)?;
        change.commit()?;
        Ok(Ok(()))
    }

    fn state(&self) -> rusqlite::Result<Result<State, StoreError>> {
        state(&self.connection, &self.path)
    }

    /// Puts a sample in; it is on the disk when this returns.
    ///
    /// # Errors
    /// [`StoreError`]; then the file is as it was.
    pub fn put(&mut self, sample: &Sample) -> Result<(), StoreError> {
        row::insert(&self.connection, sample).map_err(|error| StoreError::sqlite(&self.path, error))
    }

    /// The newest sample of a drive.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn last(&self, drive: &DriveId) -> Result<Option<Sample>, StoreError> {
        let found = self
            .connection
            .query_row(
                &format!(
                    "SELECT {} FROM sample WHERE model = ?1 AND serial = ?2 AND endurance_group IS ?3
                     ORDER BY id DESC LIMIT 1",
                    self.columns
                ),
                (&drive.model, &drive.serial, drive.group),
                |row| Ok(row::sample(row)),
            )
            .optional()
            .map_err(|error| StoreError::sqlite(&self.path, error))?;
        found
            .transpose()
            .map_err(|fault| StoreError::row(&self.path, fault))
    }

    /// All samples in the order in which they were taken.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn all(&self) -> Result<Vec<Sample>, StoreError> {
        let read = || -> rusqlite::Result<Vec<_>> {
            let mut query = self
                .connection
                .prepare(&format!("SELECT {} FROM sample ORDER BY id", self.columns))?;
            let rows = query.query_map([], |row| Ok(row::sample(row)))?;
            rows.collect()
        };
        let rows = read().map_err(|error| StoreError::sqlite(&self.path, error))?;
        let samples: Result<Vec<_>, _> = rows.into_iter().collect();
        samples.map_err(|fault| StoreError::row(&self.path, fault))
    }
}

fn state(connection: &Connection, path: &Path) -> rusqlite::Result<Result<State, StoreError>> {
    let path = path.to_owned();
    let [application, version] = [
        pragma(connection, "application_id")?,
        pragma(connection, "user_version")?,
    ];
    Ok(match (application, version) {
        (APPLICATION, VERSION) => Ok(State::Current),
        (APPLICATION, WITHOUT_WEAR) => Ok(State::WithoutWear),
        (APPLICATION, version) => Err(StoreError::Version { path, version }),
        (0, 0) => Ok(State::New),
        _ => Err(StoreError::Foreign { path }),
    })
}

fn has_tables(connection: &Connection) -> rusqlite::Result<bool> {
    let count = "SELECT COUNT(*) FROM sqlite_schema";
    connection.query_row(count, [], |row| Ok(row.get::<_, i64>(0)? > 0))
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i32> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

#[cfg(test)]
mod tests;
