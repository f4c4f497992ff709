//! The errors of a build. Their messages say how to continue.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::owner;
use super::steps::FailedStatement;
use crate::db::{ConnectError, SqlError};
use crate::script::ScriptError;
use crate::state::{IF_THEY_EXIST, Job, LoadProgress, Stage};
use crate::table::Table;

/// The reason why a build ended early.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The progress in `bmsql_config` could not be read or written.
    #[error("bmsql_config: {0}")]
    Config(#[from] SqlError),
    #[error("{0}")]
    Step(Box<FailedStep>),
    /// `tableCreates.sql` does not create every table that is loaded.
    #[error("{file} does not create all tables; drop those that exist, then correct the file")]
    NotAllTables { file: String },
    #[error("{}: {error}; rows that were loaded before are kept: continue with --resume", place(*.table, *.w_id))]
    Load {
        table: Table,
        /// 0 for a table without warehouses.
        w_id: u32,
        error: SqlError,
    },
    /// Rows of incomplete jobs could not be deleted.
    #[error("{}: rows of incomplete warehouses cannot be deleted: {error}", .table.name())]
    DeleteRows { table: Table, error: SqlError },
    /// Another process took over a job while this process loaded it.
    #[error(
        "warehouse {job} was taken over by another build --resume while this process loaded it; run \
         one process with --resume, and only while no other process loads"
    )]
    Reassigned { job: u32 },
    #[error("stopped; loaded rows are kept: continue with --resume, or drop them with destroy")]
    Stopped,
    /// The request needs tables, but there are none.
    #[error("there are no tables yet; create them on one host with build --only tables")]
    NoTables,
    /// Some of the tables exist without `bmsql_config`, so that their origin is unknown.
    #[error(
        "the database has {}, but no bmsql_config: neither Saiga nor BenchmarkSQL created it; drop \
         or rename it, or use another database", Table::list(.tables)
    )]
    Unidentified { tables: Vec<Table> },
    #[error("{} missing; {IF_THEY_EXIST}destroy the rest, then build again", are(.missing))]
    TablesMissing { missing: Vec<Table> },
    #[error(
        "the tables exist and bmsql_config is empty: load the CSV files into them, or destroy and \
         build again"
    )]
    ConfigEmpty,
    #[error(
        "the database is already built (warehouses: {warehouses}); destroy it first to build it \
         again"
    )]
    AlreadyBuilt { warehouses: u32 },
    /// The request would start a new load, but an incomplete load exists.
    #[error(
        "the load is incomplete: {}; continue with --resume when no other process loads, or drop \
         the tables with destroy", describe(.rows, *.stage)
    )]
    InProgress { rows: RowProgress, stage: Stage },
    /// The steps after the load are requested, but rows are missing.
    #[error(
        "rows are missing: {0}; wait for the processes that load, or load the rest with build --only \
         load (--resume takes over the jobs of dead processes)"
    )]
    Unfinished(RowProgress),
    /// A load is requested, but all rows are loaded already.
    #[error("all rows are loaded; complete the build on one host with build --only finish")]
    RowsLoaded,
    #[error(
        "the load in the database has {there} warehouses, but warehouses= is {wanted}; correct \
         warehouses=, or destroy and build again"
    )]
    OtherWarehouses {
        /// Value in the database.
        there: u32,
        /// Value in the props file.
        wanted: u32,
    },
    #[error(
        "the load in the database has seed {there}, not {wanted}; leave --seed out to continue it"
    )]
    OtherSeed {
        /// Value in the database.
        there: u64,
        /// Value on the command line.
        wanted: u64,
    },
    /// Another process of this host has taken a job.
    #[error(
        "{} is being loaded by process {pid} of this host; wait for its end, or stop it, before you \
         resume", place_of_job(*.job)
    )]
    StillLoading { job: u32, pid: u32 },
    /// A session, possibly of another host, holds the lock of a job.
    #[error(
        "{} is being loaded by process {} (its session holds a lock in the server); wait for its \
         end, or stop it; if its host is gone, end that session in the server",
         place_of_job(*.job), owner::shown(.by)
    )]
    LockHeld {
        job: u32,
        /// Owner mark of the process, as [`owner::current`] builds it.
        by: String,
    },
    /// A whole build is requested, but only for a part of the warehouses.
    #[error(
        "warehouses {first} to {last} of {warehouses} are a part of a load (loadidbegin, loadidend): \
         run build --only tables on one host, then build --only load for each part, then build \
         --only finish on one host; without these keys, hosts divide the warehouses themselves"
    )]
    Part {
        first: u32,
        last: u32,
        warehouses: u32,
    },
    #[error("loadidend is {last}, but there are {warehouses} warehouses; correct one of them")]
    Range { last: u32, warehouses: u32 },
    #[error("cannot write {}: {error}; incomplete files were removed", .path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("{} exists already; remove it, or set another fileLocation=", .path.display())]
    FileExists { path: PathBuf },
    /// Another process dropped the tables during the build.
    #[error("the tables were dropped by another process during the build")]
    TablesDropped,
}

/// A script that stopped at a failed statement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{file}: statement {} of {of} failed: {}\n  {}\nall statements before it were executed; {advice}",
    .failed.number, .failed.error, .failed.statement
)]
pub struct FailedStep {
    pub file: String,
    pub failed: FailedStatement,
    /// Number of statements in the script.
    pub of: usize,
    /// Advice for the user.
    pub advice: &'static str,
}

/// The progress of the rows of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowProgress {
    /// Number of warehouses in total.
    pub warehouses: u32,
    /// Number of loaded warehouses.
    pub done: u32,
    /// Number of jobs that no process has begun.
    pub open: u32,
    /// Jobs that a process has begun, each with the owner mark of that process.
    pub taken: Vec<(u32, String)>,
}

impl RowProgress {
    pub(super) fn of(progress: &LoadProgress) -> Self {
        let count = |wanted: Job, from: u32| {
            let jobs = progress
                .jobs
                .iter()
                .filter(|(number, job)| **number >= from && **job == wanted);
            u32::try_from(jobs.count()).unwrap_or(u32::MAX)
        };
        let taken = progress.jobs.iter().filter_map(|(number, job)| match job {
            Job::Taken(by) => Some((*number, by.clone())),
            Job::Open | Job::Done => None,
        });
        let warehouses = progress.info.warehouses;
        Self {
            warehouses,
            done: if progress.stage == Stage::Rows {
                count(Job::Done, 1)
            } else {
                warehouses
            },
            open: count(Job::Open, 0),
            taken: taken.collect(),
        }
    }

    /// Whether all rows are loaded.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.open == 0 && self.taken.is_empty()
    }
}

impl fmt::Display for RowProgress {
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
                write!(f, " ({} more are in progress)", taken.len() - 1)?;
            }
        }
        Ok(())
    }
}

fn describe(rows: &RowProgress, stage: Stage) -> String {
    match stage {
        Stage::Rows => rows.to_string(),
        Stage::Step(step, done) => {
            format!(
                "all rows are loaded, and {done} statements of {} were executed",
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
