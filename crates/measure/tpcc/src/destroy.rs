//! Drops the tables of a database, if Saiga or BenchmarkSQL created them.
//!
//! [`plan`] inspects the database. It fails if the origin of the tables is unknown, or if another
//! process is loading them. [`DropPlan::drop_all`] executes `tableDrops.sql` and verifies that no
//! table is left.

use std::path::Path;

use crate::build::{self, BuildError, StartAt};
use crate::db::{ConnectError, Session, SqlError};
use crate::script::{self, Script, ScriptError, Step};
use crate::state::{self, State};
use crate::table::Table;

/// The tables that will be dropped.
#[derive(Debug)]
pub struct DropPlan {
    /// The state of the database before the tables are dropped.
    pub state: State,
    script: Script,
}

/// The reason why some or all tables were not dropped.
#[derive(Debug, thiserror::Error)]
pub enum DestroyError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The state of the database could not be read.
    #[error("bmsql_config: {0}")]
    Config(#[from] SqlError),
    /// The origin of the tables is unknown, or another process is loading them.
    #[error("{0}")]
    Refused(BuildError),
    #[error("{file}: statement {number} failed: {error}; the statements before it were executed")]
    Statement {
        file: String,
        /// Number of the statement, from 1.
        number: usize,
        error: SqlError,
    },
    /// The script does not drop all tables.
    #[error("{file} does not drop {}; correct the file, or drop the tables by hand", Table::list(.left))]
    NotDropped { file: String, left: Vec<Table> },
}

/// Inspects the database. Returns `None` if there are no tables. `own_sql`, `db` and `owner` are as
/// in [`Build`](crate::build::Build).
pub fn plan(
    session: &mut dyn Session,
    own_sql: Option<&Path>,
    db: &str,
    owner: &str,
) -> Result<Option<DropPlan>, DestroyError> {
    let state = state::look(session)?;
    match &state {
        State::Empty { .. } => return Ok(None),
        State::Unidentified { tables } => {
            let tables = tables.clone();
            return Err(DestroyError::Refused(BuildError::Unidentified { tables }));
        }
        State::InProgress(progress) => {
            build::check_no_local_loader(progress, owner).map_err(DestroyError::Refused)?;
            let jobs = progress.jobs(|_| true);
            build::check_not_locked(session, progress, &jobs, owner)
                .map_err(DestroyError::Refused)?;
        }
        State::TablesMissing { .. } | State::ConfigEmpty | State::Complete(_) => {}
    }
    let script = script::find(own_sql, db, Step::TableDrops)?;
    Ok(Some(DropPlan { state, script }))
}

impl DropPlan {
    /// The file that contains the DROP statements.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.script.source
    }

    /// Drops the tables. Stops at the first statement that fails.
    pub fn drop_all(&self, session: &mut dyn Session) -> Result<(), DestroyError> {
        let file = || self.script.source.clone();
        build::run_script(session, &self.script, StartAt::First, &mut |_, _| Ok(())).map_err(
            |failed| {
                let (number, error) = (failed.number, failed.error);
                DestroyError::Statement {
                    file: file(),
                    number,
                    error,
                }
            },
        )?;
        let left = match state::look(session)? {
            State::Empty { .. } => return Ok(()),
            State::Unidentified { tables } => tables,
            State::TablesMissing { missing } => Table::ALL
                .into_iter()
                .filter(|table| !missing.contains(table))
                .collect(),
            State::ConfigEmpty | State::InProgress(_) | State::Complete(_) => Table::ALL.to_vec(),
        };
        Err(DestroyError::NotDropped { file: file(), left })
    }
}
