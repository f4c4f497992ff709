//! The sample file: an SQLite database with one row for each sample.
//!
//! It is opened for each round and closed after it, so that a moved, full or locked file only
//! affects that round. It has a rollback journal instead of a WAL, so that there is one file to
//! copy and readers write nothing. With `synchronous=EXTRA`, a reported sample survives a power
//! failure. Counters are decimal text because SQLite's integers have 63 bits.

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

/// The application ID in SQLite's header: "SWAF".
const APPLICATION: i32 = 0x5357_4146;
/// The version of the schema. Version 1 had no wear.
const VERSION: i32 = 2;
const WITHOUT_WEAR: i32 = 1;
/// The longest wait for another watcher's transaction.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);

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

/// The state of a usable file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Empty.
    New,
    /// Created by an earlier release, version 1.
    WithoutWear,
    Current,
}

impl Store {
    /// Opens the file for writing. Creates it with mode 0600 if it is missing.
    ///
    /// # Errors
    /// The file cannot be opened or created, or is not a sample file of a known version.
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

    /// Opens the file for reading. SQLite rolls back the journal of a process killed during a
    /// write.
    ///
    /// # Errors
    /// The file is missing, empty, cannot be opened, or is not a sample file of a known version.
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        // SQLite's error does not distinguish a missing file from an unreadable directory. The file
        // is not opened for this check: the close would release this process's locks on it
        // (fcntl(2)).
        accessat(CWD, path, Access::READ_OK, AtFlags::EACCESS)
            .map_err(|error| StoreError::missing(path, error.into()))?;
        let mut store = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let fault = |error| StoreError::sqlite(path, error);
        match store.state().map_err(fault)?? {
            State::New => {}
            State::Current => return Ok(store),
            State::WithoutWear => {
                // The reader may lack the permission to add the columns.
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
        connection.busy_timeout(BUSY_TIMEOUT).map_err(fault)?;
        Ok(Self {
            path: path.to_owned(),
            connection,
            columns: row::COLUMNS,
        })
    }

    /// Creates the table in an empty file, and adds the new columns to an older one, in one
    /// transaction.
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
        // Another watcher may have done so in the meantime.
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

    /// Stores a sample durably.
    ///
    /// # Errors
    /// The sample cannot be written; the file is unchanged.
    pub fn put(&mut self, sample: &Sample) -> Result<(), StoreError> {
        row::insert(&self.connection, sample).map_err(|error| StoreError::sqlite(&self.path, error))
    }

    /// Returns the newest sample of a drive.
    ///
    /// # Errors
    /// The file cannot be read, or the row is not valid.
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

    /// Returns all samples in order of time.
    ///
    /// # Errors
    /// The file cannot be read, or a row is not valid.
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
