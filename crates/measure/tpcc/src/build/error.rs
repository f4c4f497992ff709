//! Why a build ends early, and what can be done about it.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::owner;
use super::steps::Failed;
use crate::db::{ConnectError, SqlError};
use crate::script::ScriptError;
use crate::state::{Job, Ledger, NOT_SHOWN, Stage};
use crate::table::Table;

/// Why a build ended.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// There is no session.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A file of statements cannot be read.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The database could not be asked for its state, or told it.
    #[error("bmsql_config: {0}")]
    Config(#[from] SqlError),
    /// A statement of a step failed.
    #[error("{0}")]
    Step(Box<FailedStep>),
    /// A file makes other tables than those that are loaded.
    #[error("{file} does not make all tables; drop those, and correct it")]
    NotAllTables {
        /// The file.
        file: String,
    },
    /// Rows could not be stored.
    #[error("{}: {error}; what was loaded before is kept: go on with --resume", place(*.table, *.w_id))]
    Load {
        /// Where to.
        table: Table,
        /// Of which warehouse; 0 for none.
        w_id: u32,
        /// The server's words.
        error: SqlError,
    },
    /// Half-loaded rows could not be removed.
    #[error("{}: its half-loaded rows cannot be removed: {error}", .table.name())]
    TakeBack {
        /// Where from.
        table: Table,
        /// The server's words.
        error: SqlError,
    },
    /// Somebody else took this process's warehouse.
    #[error(
        "warehouse {job} was taken back by another --resume while it was loaded; let one process \
         resume, when no other loads"
    )]
    TakenBack {
        /// Its number.
        job: u32,
    },
    /// The user ended it.
    #[error("stopped; what is loaded is kept: go on with --resume, or drop it with destroy")]
    Stopped,
    /// There is nothing to go on with.
    #[error("there are no tables yet; one host makes them: build --only tables")]
    NoTables,
    /// Tables that nobody has written down.
    #[error(
        "it has {}, but no bmsql_config: neither Saiga nor BenchmarkSQL made that; drop or rename \
         it, or take another database", Table::list(.tables)
    )]
    NotOurs {
        /// Those.
        tables: Vec<Table>,
    },
    /// Tables are missing.
    #[error("{} missing; {NOT_SHOWN}destroy the rest, then build again", are(.missing))]
    Torn {
        /// Those.
        missing: Vec<Table>,
    },
    /// Tables without rows.
    #[error(
        "the tables are there and bmsql_config is empty: copy the CSV files in, or destroy and \
         build again"
    )]
    Blank,
    /// Everything is there.
    #[error("it is built already (warehouses: {warehouses}); destroy it first to build it again")]
    Built {
        /// How many.
        warehouses: u32,
    },
    /// A load that is not complete.
    #[error(
        "a load was begun and is not complete: {}; go on with --resume when no other process \
         loads, or destroy it", progress(.half, *.stage)
    )]
    Begun {
        /// How far.
        half: Half,
        /// How far.
        stage: Stage,
    },
    /// A load that is not complete cannot be finished.
    #[error(
        "rows are missing: {0}; wait for those that load, or load the rest with build --only load \
         (--resume takes over what a dead process has left)"
    )]
    Unfinished(Half),
    /// Nothing is left to load.
    #[error("all rows are there; one host does the rest: build --only finish")]
    RowsAreThere,
    /// The load is of another size.
    #[error(
        "its load is of {there} warehouses, warehouses= asks for {asked}; correct it, or destroy \
         and build again"
    )]
    OtherWarehouses {
        /// In the database.
        there: u32,
        /// In the props file.
        asked: u32,
    },
    /// The load has other rows.
    #[error("its load has seed {there}, not {asked}; leave --seed out to go on with it")]
    OtherSeed {
        /// In the database.
        there: u64,
        /// On the command line.
        asked: u64,
    },
    /// A process of this host loads.
    #[error(
        "{} is being loaded by process {pid} of this host; let it end, or stop it, before you \
         resume", place_of_job(*.job)
    )]
    StillLoading {
        /// Its job.
        job: u32,
        /// Its number.
        pid: u32,
    },
    /// A process whose session is open loads, on whatever host.
    #[error(
        "{} is being loaded by process {} (its session holds a lock in the server); let it end, or stop \
         it; if its host is gone, end that session in the server", place_of_job(*.job), owner::shown(.by)
    )]
    Held {
        /// Its job.
        job: u32,
        /// Its mark, as [`owner::here`] has it.
        by: String,
    },
    /// A part of the warehouses is asked for.
    #[error(
        "warehouses {first} to {last} of {warehouses} are a part of a load (loadidbegin, \
         loadidend): one host runs build --only tables, then each its build --only load, at last \
         one build --only finish; without these keys hosts share the warehouses by themselves"
    )]
    Part {
        /// From here.
        first: u32,
        /// To there.
        last: u32,
        /// Altogether.
        warehouses: u32,
    },
    /// A part that is none.
    #[error("loadidend is {last}, and there are {warehouses} warehouses; correct one of them")]
    Range {
        /// The last of the part.
        last: u32,
        /// Altogether.
        warehouses: u32,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {error}; nothing under the files' own names was begun", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The system's words.
        error: io::Error,
    },
    /// A file is there already.
    #[error("{} is there already; remove it, or give another fileLocation=", .path.display())]
    FileExists {
        /// Which.
        path: PathBuf,
    },
    /// Somebody dropped the tables meanwhile.
    #[error("somebody dropped the tables while they were built")]
    Vanished,
}

/// A step that was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{file}: statement {} of {of} failed: {}\n  {}\neverything before it is done; {way_out}",
    .failed.number, .failed.error, .failed.statement
)]
pub struct FailedStep {
    /// Its file.
    pub file: String,
    /// The statement.
    pub failed: Failed,
    /// How many statements there are.
    pub of: usize,
    /// What to do.
    pub way_out: &'static str,
}

/// How much of a load's rows is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Half {
    /// Warehouses altogether.
    pub warehouses: u32,
    /// Those that are loaded.
    pub done: u32,
    /// Jobs that nobody has begun.
    pub open: u32,
    /// Jobs that somebody has begun, and who, as [`owner::here`] has it.
    pub taken: Vec<(u32, String)>,
}

impl Half {
    pub(super) fn of(ledger: &Ledger) -> Self {
        let count = |wanted: Job, from: u32| {
            let jobs = ledger
                .jobs
                .iter()
                .filter(|(number, job)| **number >= from && **job == wanted);
            u32::try_from(jobs.count()).unwrap_or(u32::MAX)
        };
        let taken = ledger.jobs.iter().filter_map(|(number, job)| match job {
            Job::Taken(by) => Some((*number, by.clone())),
            Job::Open | Job::Done => None,
        });
        let warehouses = ledger.loaded.warehouses;
        Self {
            warehouses,
            done: if ledger.stage == Stage::Rows {
                count(Job::Done, 1)
            } else {
                warehouses
            },
            open: count(Job::Open, 0),
            taken: taken.collect(),
        }
    }

    /// Whether all rows are there.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.open == 0 && self.taken.is_empty()
    }
}

impl fmt::Display for Half {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            warehouses,
            done,
            open,
            taken,
        } = self;
        let verb = if *done == 1 { "is" } else { "are" };
        write!(f, "{done} of {warehouses} warehouses {verb} loaded")?;
        if *open > 0 {
            let verb = if *open == 1 { "job is" } else { "jobs are" };
            write!(f, ", {open} {verb} not begun")?;
        }
        if let Some((job, by)) = taken.first() {
            let (place, by) = (place_of_job(*job), owner::shown(by));
            write!(f, ", {place} was begun by process {by}")?;
            if taken.len() > 1 {
                write!(f, " ({} more are under way)", taken.len() - 1)?;
            }
        }
        Ok(())
    }
}

fn progress(half: &Half, stage: Stage) -> String {
    match stage {
        Stage::Rows => half.to_string(),
        Stage::Step(step, done) => {
            format!(
                "all rows are there, and {done} statements of {} were run",
                step.name()
            )
        }
    }
}

fn place_of_job(job: u32) -> String {
    match job {
        0 => "bmsql_item".to_owned(),
        w_id => format!("warehouse {w_id}"),
    }
}

fn place(table: Table, w_id: u32) -> String {
    match w_id {
        0 => table.name().to_owned(),
        w_id => format!("{}, warehouse {w_id}", table.name()),
    }
}

fn are(tables: &[Table]) -> String {
    format!(
        "{} {}",
        Table::list(tables),
        if tables.len() == 1 { "is" } else { "are" }
    )
}
