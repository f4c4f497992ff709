//! Creates the tables and loads them, in BenchmarkSQL's order: `tableCreates`, rows,
//! `indexCreates`, `foreignKeys`, `extraHistID`, `buildFinish`.
//!
//! The first error ends the build. The work done so far is kept, and `bmsql_config` records the
//! progress ([`state`]), so that the build can be resumed. Several hosts can share the load: one
//! host creates the tables, all hosts load warehouses until none is left, and one host executes the
//! steps after the load.

pub mod csv;
mod error;
mod job_lock;
mod load;
pub mod owner;
mod plan;
mod steps;

use std::path::Path;
use std::time::Duration;

pub use error::{BuildError, FailedStep, RowProgress};
pub(crate) use job_lock::check_not_locked;
pub(crate) use plan::check_no_local_loader;
pub use plan::{BuildPart, BuildRequest};
pub use steps::{FailedStatement, StartAt, run_script};

use crate::db::{ConnectError, Session, SqlError};
use crate::population::Population;
use crate::script::Step;
use crate::spec::nurand::Constants;
use crate::state::{self, LoadInfo, Origin, Stage, State};
use crate::table::Table;
use plan::BuildPhase;

/// Opens a session with the database; called from several threads.
pub type Open<'a> = &'a (dyn Fn() -> Result<Box<dyn Session>, ConnectError> + Sync);

/// Returns true once the user wants the operation to end.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// A build: database, scripts, request and callbacks.
#[derive(Clone, Copy)]
pub struct Build<'a> {
    pub open: Open<'a>,
    /// Name of the database system (`db=`). Its scripts are in the folder `sql.NAME`.
    pub db: &'a str,
    /// The user's folder of SQL scripts.
    pub own_sql: Option<&'a Path>,
    pub request: BuildRequest,
    /// Number of sessions that load at the same time.
    pub workers: u32,
    /// Seed of a load that begins now. A resumed load keeps its seed.
    pub fresh_seed: u64,
    /// Date of a load that begins now, in seconds since 1970.
    pub now: i64,
    /// The owner mark of this process, from [`owner::current`].
    pub owner: &'a str,
    /// Polled; the build ends once it returns true.
    pub stop: Stop<'a>,
    /// Called for each event, from several threads at once.
    pub on_event: &'a (dyn Fn(Event<'_>) + Sync),
}

impl std::fmt::Debug for Build<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Build")
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

/// An event of a build, for progress output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// The script of a step begins.
    Step {
        step: Step,
        /// The file of the statements.
        source: &'a str,
    },
    /// The script of a step is done.
    StepDone {
        step: Step,
        /// Number of statements that were executed.
        statements: usize,
        took: Duration,
    },
    /// The load of rows begins.
    Loading {
        /// Number of warehouses to load.
        warehouses: u32,
        /// Number of sessions, or of files that are written at the same time.
        workers: usize,
        seed: u64,
    },
    /// The load uses a slow method. The text says why, and how to avoid it. Reported once.
    SlowLoad(&'static str),
    /// Number of rows sent since the last such event.
    Rows(u64),
    /// This warehouse is loaded.
    Warehouse(u32),
    /// All rows of this process's jobs are loaded.
    Loaded { took: Duration },
}

/// The outcome of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildOutcome {
    /// The database is complete.
    Complete(LoadInfo),
    /// The tables exist and are empty.
    Tables(LoadInfo),
    /// This process has loaded its part of the rows.
    Rows(RowProgress),
}

impl Build<'_> {
    /// Builds the database, or completes a build. Rows of complete jobs are never deleted.
    pub fn run(&self) -> Result<BuildOutcome, BuildError> {
        let mut session = (self.open)()?;
        let state = state::look(&mut *session)?;
        let phases = plan::plan(&state, &self.request, self.owner)?;
        for phase in phases {
            self.check_stop()?;
            match phase {
                BuildPhase::Tables => self.tables(&mut *session)?,
                BuildPhase::EmptyTables => {
                    self.step(&mut *session, Step::TableCreates, StartAt::First)?
                }
                BuildPhase::Reset => self.reset_jobs(&mut *session)?,
                BuildPhase::Rows => self.rows(&mut *session)?,
                BuildPhase::Finish => self.finish(&mut *session)?,
            }
        }
        self.outcome(&mut *session)
    }

    /// Checks whether the request is valid for a database without tables. No session is opened,
    /// because SQLite would create its file.
    pub fn check_from_nothing(&self) -> Result<(), BuildError> {
        let nothing = State::Empty {
            other_tools: Vec::new(),
        };
        plan::plan(&nothing, &self.request, self.owner).map(drop)
    }

    fn tables(&self, session: &mut dyn Session) -> Result<(), BuildError> {
        self.step(session, Step::TableCreates, StartAt::First)?;
        let State::ConfigEmpty = state::look(session)? else {
            let file = steps::source(self, Step::TableCreates)?;
            return Err(BuildError::NotAllTables { file });
        };
        let population = Population::new(self.fresh_seed, self.request.warehouses, self.now);
        let config = |error| BuildError::Load {
            table: Table::Config,
            w_id: 0,
            error,
        };
        session
            .load(Table::Config, &mut |sink| {
                state::write(&population, Stage::Rows, sink)
            })
            .map_err(config)
    }

    /// Deletes the rows of jobs that other processes left incomplete, and opens these jobs again.
    fn reset_jobs(&self, session: &mut dyn Session) -> Result<(), BuildError> {
        let State::InProgress(progress) = state::look(session)? else {
            return Ok(());
        };
        load::reset_jobs(session, &progress, &self.request, self.owner)
    }

    fn rows(&self, session: &mut dyn Session) -> Result<(), BuildError> {
        let State::InProgress(progress) = state::look(session)? else {
            return Ok(());
        };
        load::load(self, &progress)
    }

    /// Executes the steps after the load, beginning with the first statement not yet recorded.
    fn finish(&self, session: &mut dyn Session) -> Result<(), BuildError> {
        let State::InProgress(progress) = state::look(session)? else {
            return Ok(());
        };
        let (first, mut begin) = match progress.stage {
            Stage::Step(step, done) => (step, StartAt::InDoubt(done)),
            Stage::Rows => {
                let rows = RowProgress::of(&progress);
                if !rows.is_whole() {
                    return Err(BuildError::Unfinished(rows));
                }
                let stage = Stage::Step(Step::AFTER_LOAD[0], 0);
                state::advance(session, stage)?;
                (Step::AFTER_LOAD[0], StartAt::First)
            }
        };
        let steps = Step::AFTER_LOAD
            .into_iter()
            .skip_while(|step| *step != first);
        for step in steps {
            self.check_stop()?;
            self.step(session, step, begin)?;
            begin = StartAt::First;
        }
        Ok(state::complete(session)?)
    }

    fn outcome(&self, session: &mut dyn Session) -> Result<BuildOutcome, BuildError> {
        match state::look(session)? {
            State::Complete(loaded) => Ok(BuildOutcome::Complete(loaded)),
            State::InProgress(progress) if self.request.part == BuildPart::Tables => {
                Ok(BuildOutcome::Tables(progress.info))
            }
            State::InProgress(progress) => Ok(BuildOutcome::Rows(RowProgress::of(&progress))),
            State::ConfigEmpty => Ok(BuildOutcome::Tables(LoadInfo {
                warehouses: self.request.warehouses,
                constants: Constants {
                    last_name: 0,
                    customer: 0,
                    item: 0,
                },
                origin: None,
            })),
            State::Empty { .. } | State::Unidentified { .. } | State::TablesMissing { .. } => {
                Err(BuildError::TablesDropped)
            }
        }
    }

    fn check_stop(&self) -> Result<(), BuildError> {
        if (self.stop)() {
            return Err(BuildError::Stopped);
        }
        Ok(())
    }
}

/// The population of a load in progress. Only loads by Saiga are in progress, so the origin is
/// known.
fn population(loaded: &LoadInfo) -> Result<Population, SqlError> {
    let Origin { seed, time } = loaded.origin.ok_or_else(|| SqlError::Unexpected {
        what: "bmsql_config is invalid: the seed of the load is missing".to_owned(),
    })?;
    Ok(Population {
        seed,
        warehouses: loaded.warehouses,
        constants: loaded.constants,
        now: time,
    })
}

/// The error that stops a load. It is never shown to a user.
fn stopped() -> SqlError {
    SqlError::Unexpected {
        what: "stopped".to_owned(),
    }
}
