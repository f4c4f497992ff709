//! Drops the tables, when they are ours or BenchmarkSQL's.

use std::path::Path;

use crate::build::{self, Begin, BuildError};
use crate::db::{ConnectError, Session, SqlError};
use crate::script::{self, Script, ScriptError, Step};
use crate::state::{self, State};
use crate::table::Table;

/// What is to be dropped, seen and not yet touched.
#[derive(Debug)]
pub struct Doomed {
    /// What is there.
    pub state: State,
    script: Script,
}

/// Why nothing, or not everything, was dropped.
#[derive(Debug, thiserror::Error)]
pub enum DestroyError {
    /// There is no session.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A file of statements cannot be read.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The database could not be asked for its state.
    #[error("bmsql_config: {0}")]
    Config(#[from] SqlError),
    /// It is not ours, or somebody loads it.
    #[error("{0}")]
    Refused(BuildError),
    /// A statement failed.
    #[error("{file}: statement {number} failed: {error}; what comes before it is dropped")]
    Statement {
        /// The file.
        file: String,
        /// From one.
        number: usize,
        /// The server's words.
        error: SqlError,
    },
    /// The file forgets some of them.
    #[error("{file} does not drop {}; correct it, or drop them by hand", Table::list(.left))]
    Left {
        /// The file.
        file: String,
        /// Those.
        left: Vec<Table>,
    },
}

/// Looks at what would be dropped; `None` when nothing is there. `own_sql` and `db` are as for a
/// build, `who` is the mark of this host and process.
///
/// # Errors
/// [`DestroyError`].
pub fn look(
    session: &mut dyn Session,
    own_sql: Option<&Path>,
    db: &str,
    who: &str,
) -> Result<Option<Doomed>, DestroyError> {
    let state = state::look(session)?;
    match &state {
        State::Empty { .. } => return Ok(None),
        State::NotOurs { tables } => {
            let tables = tables.clone();
            return Err(DestroyError::Refused(BuildError::NotOurs { tables }));
        }
        State::Begun(ledger) => {
            build::check_nobody_loads(ledger, who).map_err(DestroyError::Refused)?;
            let jobs = ledger.jobs(|_| true);
            build::check_nobody_holds(session, ledger, &jobs, who)
                .map_err(DestroyError::Refused)?;
        }
        State::Torn { .. } | State::Blank | State::Complete(_) => {}
    }
    let script = script::find(own_sql, db, Step::TableDrops)?;
    Ok(Some(Doomed { state, script }))
}

impl Doomed {
    /// The file of the statements that drop it.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.script.source
    }

    /// Drops it.
    ///
    /// # Errors
    /// [`DestroyError`].
    pub fn drop_all(&self, session: &mut dyn Session) -> Result<(), DestroyError> {
        let file = || self.script.source.clone();
        build::run_script(session, &self.script, Begin::AtFirst, &mut |_, _| Ok(())).map_err(
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
            State::NotOurs { tables } => tables,
            State::Torn { missing } => Table::ALL
                .into_iter()
                .filter(|table| !missing.contains(table))
                .collect(),
            State::Blank | State::Begun(_) | State::Complete(_) => Table::ALL.to_vec(),
        };
        Err(DestroyError::Left { file: file(), left })
    }
}
