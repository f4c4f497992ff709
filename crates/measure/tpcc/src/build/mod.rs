//! Makes the tables and loads them, in BenchmarkSQL's order: `tableCreates`, rows, `indexCreates`,
//! `foreignKeys`, `extraHistID`, `buildFinish`.
//!
//! The first error ends it, and what was done stays: `bmsql_config` says how far it is
//! ([`state`]), so that it can be completed. Several hosts can share the rows: one
//! makes the tables, all take warehouses until none is left, one does the rest.

pub mod csv;
mod error;
mod hold;
mod load;
pub mod owner;
mod plan;
mod steps;

use std::path::Path;
use std::time::Duration;

pub use error::{BuildError, FailedStep, Half};
pub(crate) use hold::check_nobody_holds;
pub(crate) use plan::check_nobody_loads;
pub use plan::{Asked, Part};
pub use steps::{Begin, Failed, run_script};

use crate::db::{ConnectError, Session, SqlError};
use crate::population::Population;
use crate::script::Step;
use crate::spec::nurand::Constants;
use crate::state::{self, Loaded, Origin, Stage, State};
use crate::table::Table;
use plan::Phase;

/// Opens a session with the database.
pub type Open<'a> = &'a (dyn Fn() -> Result<Box<dyn Session>, ConnectError> + Sync);

/// Whether the user wants it to end.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// How a database is built.
#[derive(Clone, Copy)]
pub struct Build<'a> {
    /// Opens a session with it.
    pub open: Open<'a>,
    /// The folder `sql.NAME` of its statements, as `db=` says.
    pub db: &'a str,
    /// The user's own folder of statements.
    pub own_sql: Option<&'a Path>,
    /// What the user wants.
    pub asked: Asked,
    /// Sessions that load at the same time.
    pub workers: u32,
    /// The seed of a load that begins now.
    pub fresh_seed: u64,
    /// The time of a load that begins now, in seconds since 1970.
    pub now: i64,
    /// Host and process, by which jobs are marked, as [`owner::here`] has it.
    pub who: &'a str,
    /// Ends the build when it becomes true.
    pub stop: Stop<'a>,
    /// Is told what happens, by several threads at once.
    pub on: &'a (dyn Fn(Event<'_>) + Sync),
}

impl std::fmt::Debug for Build<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Build")
            .field("asked", &self.asked)
            .finish_non_exhaustive()
    }
}

/// What happens in a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A step begins.
    Step {
        /// Which.
        step: Step,
        /// The file of its statements.
        source: &'a str,
    },
    /// It is done.
    StepDone {
        /// Which.
        step: Step,
        /// How many statements were run.
        statements: usize,
        /// How long it took.
        took: Duration,
    },
    /// Rows are loaded from now on.
    Loading {
        /// Warehouses to load.
        warehouses: u32,
        /// Sessions, or files.
        workers: usize,
        /// The seed.
        seed: u64,
    },
    /// Rows go in a slow way: why, and what helps. Once.
    SlowLoad(&'static str),
    /// So many more rows have been sent.
    Rows(u64),
    /// One more warehouse is there.
    Warehouse(u32),
    /// All rows that were to be loaded are there.
    Loaded {
        /// How long it took.
        took: Duration,
    },
}

/// What a build has come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// Everything is there.
    Complete(Loaded),
    /// The tables are there and have no rows.
    Tables(Loaded),
    /// This process has loaded what it could.
    Rows(Half),
}

impl Build<'_> {
    /// Builds, or completes what was begun.
    ///
    /// # Errors
    /// [`BuildError`]. Nothing that was there before is lost.
    pub fn run(&self) -> Result<Done, BuildError> {
        let mut session = (self.open)()?;
        let state = state::look(&mut *session)?;
        let phases = plan::plan(&state, &self.asked, self.who)?;
        for phase in phases {
            self.go_on()?;
            match phase {
                Phase::Tables => self.tables(&mut *session)?,
                Phase::EmptyTables => {
                    self.step(&mut *session, Step::TableCreates, Begin::AtFirst)?
                }
                Phase::TakeBack => self.take_back(&mut *session)?,
                Phase::Rows => self.rows(&mut *session)?,
                Phase::Finish => self.finish(&mut *session)?,
            }
        }
        self.outcome(&mut *session)
    }

    /// Whether this could be built where there are no tables: a look at SQLite's file would make it.
    ///
    /// # Errors
    /// Why not.
    pub fn check_from_nothing(&self) -> Result<(), BuildError> {
        let nothing = State::Empty {
            strangers: Vec::new(),
        };
        plan::plan(&nothing, &self.asked, self.who).map(drop)
    }

    fn tables(&self, session: &mut dyn Session) -> Result<(), BuildError> {
        self.step(session, Step::TableCreates, Begin::AtFirst)?;
        let State::Blank = state::look(session)? else {
            let file = steps::source(self, Step::TableCreates)?;
            return Err(BuildError::NotAllTables { file });
        };
        let population = Population::new(self.fresh_seed, self.asked.warehouses, self.now);
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

    /// Makes jobs open again that somebody has left half done, and removes their rows.
    fn take_back(&self, session: &mut dyn Session) -> Result<(), BuildError> {
        let State::Begun(ledger) = state::look(session)? else {
            return Ok(());
        };
        load::take_back(session, &ledger, &self.asked, self.who)
    }

    fn rows(&self, session: &mut dyn Session) -> Result<(), BuildError> {
        let State::Begun(ledger) = state::look(session)? else {
            return Ok(());
        };
        load::load(self, &ledger)
    }

    /// The steps behind the rows, from where they were left.
    fn finish(&self, session: &mut dyn Session) -> Result<(), BuildError> {
        let State::Begun(ledger) = state::look(session)? else {
            return Ok(());
        };
        let (first, mut begin) = match ledger.stage {
            Stage::Step(step, done) => (step, Begin::InDoubt(done)),
            Stage::Rows => {
                let half = Half::of(&ledger);
                if !half.is_whole() {
                    return Err(BuildError::Unfinished(half));
                }
                let stage = Stage::Step(Step::AFTER_LOAD[0], 0);
                state::advance(session, stage)?;
                (Step::AFTER_LOAD[0], Begin::AtFirst)
            }
        };
        let steps = Step::AFTER_LOAD
            .into_iter()
            .skip_while(|step| *step != first);
        for step in steps {
            self.go_on()?;
            self.step(session, step, begin)?;
            begin = Begin::AtFirst;
        }
        Ok(state::complete(session)?)
    }

    fn outcome(&self, session: &mut dyn Session) -> Result<Done, BuildError> {
        match state::look(session)? {
            State::Complete(loaded) => Ok(Done::Complete(loaded)),
            State::Begun(ledger) if self.asked.part == Part::Tables => {
                Ok(Done::Tables(ledger.loaded))
            }
            State::Begun(ledger) => Ok(Done::Rows(Half::of(&ledger))),
            State::Blank => Ok(Done::Tables(Loaded {
                warehouses: self.asked.warehouses,
                constants: Constants {
                    last_name: 0,
                    customer: 0,
                    item: 0,
                },
                origin: None,
            })),
            State::Empty { .. } | State::NotOurs { .. } | State::Torn { .. } => {
                Err(BuildError::Vanished)
            }
        }
    }

    fn go_on(&self) -> Result<(), BuildError> {
        if (self.stop)() {
            return Err(BuildError::Stopped);
        }
        Ok(())
    }
}

/// The population of a load that has begun.
fn population(loaded: &Loaded) -> Option<Population> {
    let Origin { seed, time } = loaded.origin?;
    Some(Population {
        seed,
        warehouses: loaded.warehouses,
        constants: loaded.constants,
        now: time,
    })
}

/// What ends a load from within: nobody sees it.
fn stopped() -> SqlError {
    SqlError::Unexpected {
        what: "stopped".to_owned(),
    }
}
