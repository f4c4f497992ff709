//! The state of a database: no tables, a load in progress, or a complete load.
//!
//! A load records its progress in `bmsql_config`, so that an incomplete database is not mistaken
//! for a complete one and the load can be resumed. The table has BenchmarkSQL's rows and these:
//! `saiga_build` (the stage), `saiga_seed` and `saiga_time` (the origin of all rows), and, while
//! rows are loaded, `saiga_job_N` for each job. Job 0 is ITEM, job N is warehouse N, as in
//! BenchmarkSQL.

use std::collections::BTreeMap;
use std::fmt;

use crate::db::rows::Rows;
use crate::db::{Session, SqlError};
use crate::population::{Population, Sink};
use crate::props::Engine;
use crate::script::Step;
use crate::spec::nurand::Constants;
use crate::table::Table;

/// The state of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// The database has none of the tables.
    Empty {
        /// Tables of other TPC-C tools in this database.
        other_tools: Vec<String>,
    },
    /// Some of the tables without `bmsql_config`: neither Saiga nor BenchmarkSQL created them.
    Unidentified { tables: Vec<Table> },
    /// `bmsql_config` exists and other tables are missing.
    TablesMissing { missing: Vec<Table> },
    /// All tables exist and `bmsql_config` is empty.
    ConfigEmpty,
    /// A load by Saiga that is not complete.
    InProgress(LoadProgress),
    /// A complete load, according to `bmsql_config`.
    Complete(LoadInfo),
}

/// The parameters of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadInfo {
    /// Number of warehouses, loaded or to be loaded.
    pub warehouses: u32,
    /// NURand constants of the load (C-Load).
    pub constants: Constants,
    /// The origin of the rows; `None` for a load by BenchmarkSQL.
    pub origin: Option<Origin>,
}

/// The parameters of [`Population`] that determine all rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    pub seed: u64,
    /// Date of the load, in seconds since 1970.
    pub time: i64,
}

/// The progress of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadProgress {
    pub info: LoadInfo,
    pub stage: Stage,
    /// The jobs by number; empty after the rows are loaded.
    pub jobs: BTreeMap<u32, Job>,
}

/// A stage of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Rows are being loaded.
    Rows,
    /// All rows are loaded, and this many statements of the step were executed.
    Step(Step, usize),
}

/// The state of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    Open,
    /// A process has begun the job. The value is its owner mark, as in
    /// [`build::owner`](crate::build::owner).
    Taken(String),
    Done,
}

// Names in `bmsql_config`.
const BUILD: &str = "saiga_build";
const SEED: &str = "saiga_seed";
const TIME: &str = "saiga_time";
const JOB: &str = "saiga_job_";
// Values of `saiga_build` and of jobs.
const ROWS: &str = "rows";
const COMPLETE: &str = "complete";
const OPEN: &str = "open";
const DONE: &str = "done";

/// Tables of go-tpc, sysbench-tpcc, HammerDB, BenchBase and BenchmarkSQL 4.
const OTHER_TOOLS: [&str; 9] = [
    "warehouse",
    "district",
    "customer",
    "history",
    "new_order",
    "oorder",
    "orders",
    "order_line",
    "stock",
];

/// Advice for tables that seem to be missing: the user may lack rights on them.
pub const IF_THEY_EXIST: &str = "if they exist, GRANT the user of user= rights on them; if not, ";

/// Reads the state of a database.
///
/// # Errors
/// [`SqlError::Unexpected`] if `bmsql_config` has values that no load writes; otherwise the error
/// of the server.
pub fn look(session: &mut dyn Session) -> Result<State, SqlError> {
    let mut rows = Rows::new();
    let names = table_names(session, &mut rows)?;
    let (present, missing): (Vec<_>, Vec<_>) = Table::ALL
        .into_iter()
        .partition(|table| names.iter().any(|name| name == table.name()));
    if present.is_empty() {
        let known = names
            .into_iter()
            .filter(|name| OTHER_TOOLS.contains(&name.as_str()));
        return Ok(State::Empty {
            other_tools: known.collect(),
        });
    }
    if missing.contains(&Table::Config) {
        return Ok(State::Unidentified { tables: present });
    }
    if !missing.is_empty() {
        return Ok(State::TablesMissing { missing });
    }
    session.run("select cfg_name, cfg_value from bmsql_config", &mut rows)?;
    of_config(&rows)
}

/// Names of the tables in this database, in lower case. MySQL lists only tables on which the user
/// has rights. PostgreSQL's `information_schema` does the same; its catalog lists all.
fn table_names(session: &mut dyn Session, rows: &mut Rows) -> Result<Vec<String>, SqlError> {
    let sql = match session.server().engine {
        Engine::MySql => {
            "select table_name from information_schema.tables where table_schema = database()"
        }
        Engine::Postgres | Engine::OpenGauss => {
            "select cast(relname as varchar(200)) from pg_catalog.pg_class \
             join pg_catalog.pg_namespace on pg_namespace.oid = relnamespace \
             where relkind in ('r', 'p', 'v', 'f') and nspname = any(current_schemas(false))"
        }
        Engine::Sqlite => "select name from sqlite_master where type = 'table'",
    };
    session.run(sql, rows)?;
    let name = |row| Ok(rows.text(row, 0)?.to_ascii_lowercase());
    (0..rows.len()).map(name).collect()
}

fn of_config(rows: &Rows) -> Result<State, SqlError> {
    let mut values = BTreeMap::new();
    for row in 0..rows.len() {
        values.insert(rows.text(row, 0)?, rows.text(row, 1)?);
    }
    if values.is_empty() {
        return Ok(State::ConfigEmpty);
    }
    let build = values.get(BUILD).copied();
    let origin = match build {
        None => None,
        Some(_) => Some(Origin {
            seed: number(&values, SEED)?,
            time: number(&values, TIME)?,
        }),
    };
    let loaded = LoadInfo {
        warehouses: number(&values, "warehouses")?,
        constants: Constants {
            last_name: number_up_to(255, &values, "nURandCLast")?,
            customer: number_up_to(1023, &values, "nURandCC_ID")?,
            item: number_up_to(8191, &values, "nURandCI_ID")?,
        },
        origin,
    };
    let stage = match build {
        None | Some(COMPLETE) => return Ok(State::Complete(loaded)),
        Some(ROWS) => Stage::Rows,
        Some(text) => step(text).ok_or_else(|| invalid(BUILD, Some(text)))?,
    };
    let jobs = values.iter().filter_map(|(name, value)| {
        let number = name.strip_prefix(JOB)?;
        Some(
            number
                .parse()
                .map(|n| (n, job(value)))
                .map_err(|_| invalid(name, Some(value))),
        )
    });
    let jobs = jobs.collect::<Result<_, _>>()?;
    Ok(State::InProgress(LoadProgress {
        info: loaded,
        stage,
        jobs,
    }))
}

fn number<T: std::str::FromStr>(values: &BTreeMap<&str, &str>, name: &str) -> Result<T, SqlError> {
    let value = values.get(name).copied();
    let number = value.and_then(|value| value.trim().parse().ok());
    number.ok_or_else(|| invalid(name, value))
}

/// Rejects a constant above its range (§2.1.6.1). For a C-Load of C_LAST far above the range, no
/// C-Run would exist.
fn number_up_to(most: u32, values: &BTreeMap<&str, &str>, name: &str) -> Result<u32, SqlError> {
    let number = number(values, name)?;
    if number > most {
        return Err(invalid(name, values.get(name).copied()));
    }
    Ok(number)
}

fn invalid(name: &str, value: Option<&str>) -> SqlError {
    let found = value.map_or("is missing".to_owned(), |value| format!("is {value:?}"));
    SqlError::Unexpected {
        what: format!("bmsql_config is invalid: {name} {found}"),
    }
}

fn job(value: &str) -> Job {
    match value {
        OPEN => Job::Open,
        DONE => Job::Done,
        owner => Job::Taken(owner.to_owned()),
    }
}

/// Parses a stage such as `indexCreates 3`.
fn step(text: &str) -> Option<Stage> {
    let (name, done) = text.split_once(' ')?;
    let step = Step::AFTER_LOAD
        .into_iter()
        .find(|step| step.name() == name)?;
    Some(Stage::Step(step, done.parse().ok()?))
}

impl fmt::Display for State {
    /// Writes the state, and how to get a usable database.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty { other_tools } if other_tools.is_empty() => {
                f.write_str("there are no tables; `saiga bench tpcc build` creates and loads them")
            }
            Self::Empty { other_tools } => write!(
                f,
                "the database has tables of another TPC-C tool ({}) and none of BenchmarkSQL's; \
                 `saiga bench tpcc build` creates those beside them",
                other_tools.join(", ")
            ),
            Self::Unidentified { tables } => write!(
                f,
                "the database has {}, but no bmsql_config: neither Saiga nor BenchmarkSQL created it",
                Table::list(tables)
            ),
            Self::TablesMissing { missing } => write!(
                f,
                "these tables are missing: {}; {IF_THEY_EXIST}destroy the rest, then build again",
                Table::list(missing)
            ),
            Self::ConfigEmpty => f.write_str(
                "the tables exist and bmsql_config is empty: the load was not begun; destroy and build \
                 again",
            ),
            Self::InProgress(progress) => write!(
                f,
                "{}; continue with `saiga bench tpcc build --resume`, or drop the tables with `saiga \
                 bench tpcc destroy`",
                progress.describe()
            ),
            Self::Complete(loaded) => write!(f, "{} warehouses are loaded", loaded.warehouses),
        }
    }
}

impl fmt::Display for Stage {
    /// Writes the value of `saiga_build`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows => f.write_str(ROWS),
            Self::Step(step, done) => write!(f, "{} {done}", step.name()),
        }
    }
}

/// Writes the rows of `bmsql_config` for a load at a stage. All jobs are open.
pub fn write<S: Sink + ?Sized>(
    population: &Population,
    stage: Stage,
    sink: &mut S,
) -> Result<(), S::Error> {
    population.write_common(Table::Config, sink)?;
    let mut row = |name: &str, value: &str| {
        sink.text(name);
        sink.text(value);
        sink.end_row()
    };
    row(BUILD, &stage.to_string())?;
    row(SEED, &population.seed.to_string())?;
    row(TIME, &population.now.to_string())?;
    if stage == Stage::Rows {
        for job in 0..=population.warehouses {
            row(&format!("{JOB}{job}"), OPEN)?;
        }
    }
    Ok(())
}

/// Takes an open job for `owner`. Returns false if the job is not open.
pub fn take(session: &mut dyn Session, job: u32, owner: &str) -> Result<bool, SqlError> {
    set_job(session, job, OPEN, owner)
}

/// Marks a job of `owner` as done. Returns false if the job was reassigned.
pub fn done(session: &mut dyn Session, job: u32, owner: &str) -> Result<bool, SqlError> {
    set_job(session, job, owner, DONE)
}

/// Reassigns a job from `from` to `owner`. Returns false if `from` does not hold it any more.
pub fn reassign(
    session: &mut dyn Session,
    job: u32,
    from: &str,
    owner: &str,
) -> Result<bool, SqlError> {
    set_job(session, job, from, owner)
}

/// Opens a job of `owner` again, after its rows were deleted. Returns false if the job was
/// reassigned.
pub fn reopen(session: &mut dyn Session, job: u32, owner: &str) -> Result<bool, SqlError> {
    set_job(session, job, owner, OPEN)
}

fn set_job(session: &mut dyn Session, job: u32, from: &str, to: &str) -> Result<bool, SqlError> {
    let (from, to) = (quoted(from), quoted(to));
    let sql = format!(
        "update bmsql_config set cfg_value = {to} \
         where cfg_name = '{JOB}{job}' and cfg_value = {from}"
    );
    loop {
        match session.run(&sql, &mut Rows::new()) {
            // Two sessions updated the same job, and the server aborted this one. Try again.
            Err(SqlError::Conflict { .. }) => {}
            other => return Ok(other? == 1),
        }
    }
}

/// Records a stage. The rows of the jobs are deleted when all rows are loaded.
pub fn advance(session: &mut dyn Session, stage: Stage) -> Result<(), SqlError> {
    set_build(session, &stage.to_string())?;
    if stage == Stage::Step(Step::IndexCreates, 0) {
        let sql = format!("delete from bmsql_config where cfg_name like '{JOB}%'");
        session.run(&sql, &mut Rows::new())?;
    }
    Ok(())
}

/// Records that the load is complete.
pub fn complete(session: &mut dyn Session) -> Result<(), SqlError> {
    set_build(session, COMPLETE)
}

fn set_build(session: &mut dyn Session, value: &str) -> Result<(), SqlError> {
    let sql = format!("update bmsql_config set cfg_value = '{value}' where cfg_name = '{BUILD}'");
    session.run(&sql, &mut Rows::new()).map(|_| ())
}

/// An SQL literal. Owner marks contain letters, digits, dots, colons, hyphens and underscores;
/// other characters are removed.
fn quoted(text: &str) -> String {
    let plain = |c: &char| c.is_ascii_alphanumeric() || ".-:_".contains(*c);
    format!("'{}'", text.chars().filter(plain).collect::<String>())
}

impl LoadProgress {
    /// The progress as a sentence.
    #[must_use]
    pub fn describe(&self) -> String {
        match self.stage {
            Stage::Rows => {
                let done = self
                    .jobs(|job| *job == Job::Done)
                    .into_iter()
                    .filter(|job| *job > 0);
                let (done, all) = (done.count(), self.info.warehouses);
                format!("the load is incomplete: {done} of {all} warehouses are loaded")
            }
            Stage::Step(step, done) => format!(
                "all rows are loaded, but the build is incomplete: {done} statements of {} were \
                 executed",
                step.name()
            ),
        }
    }

    /// Numbers of the jobs that satisfy `which`.
    pub fn jobs(&self, which: impl Fn(&Job) -> bool) -> Vec<u32> {
        self.jobs
            .iter()
            .filter(|(_, job)| which(job))
            .map(|(number, _)| *number)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(pairs: &[(&str, &str)]) -> Result<State, SqlError> {
        let mut rows = Rows::new();
        for (name, value) in pairs {
            rows.push_text(name.as_bytes());
            rows.push_text(value.as_bytes());
            rows.end_row();
        }
        of_config(&rows)
    }

    const BENCHMARKSQL: [(&str, &str); 4] = [
        ("warehouses", "2"),
        ("nURandCLast", "7"),
        ("nURandCC_ID", "8"),
        ("nURandCI_ID", "9"),
    ];

    fn ours(more: &[(&'static str, &'static str)]) -> Result<State, SqlError> {
        let origin = [("saiga_seed", "5"), ("saiga_time", "6")];
        config(&[&BENCHMARKSQL[..], &origin, more].concat())
    }

    #[test]
    fn a_load_by_benchmarksql_is_complete() {
        let constants = Constants {
            last_name: 7,
            customer: 8,
            item: 9,
        };
        let loaded = LoadInfo {
            warehouses: 2,
            constants,
            origin: None,
        };
        assert_eq!(config(&BENCHMARKSQL), Ok(State::Complete(loaded)));
        assert_eq!(config(&[]), Ok(State::ConfigEmpty));
    }

    #[test]
    fn the_progress_of_a_load_is_read() {
        let complete = ours(&[("saiga_build", "complete")]).unwrap();
        let State::Complete(loaded) = complete else {
            panic!("{complete:?}")
        };
        assert_eq!(loaded.origin, Some(Origin { seed: 5, time: 6 }));
        let jobs = [
            ("saiga_build", "rows"),
            ("saiga_job_0", "done"),
            ("saiga_job_1", "db7:11"),
            ("saiga_job_2", "open"),
        ];
        let State::InProgress(progress) = ours(&jobs).unwrap() else {
            panic!("not begun")
        };
        assert_eq!(progress.stage, Stage::Rows);
        let wanted = [
            (0, Job::Done),
            (1, Job::Taken("db7:11".to_owned())),
            (2, Job::Open),
        ];
        assert_eq!(progress.jobs, BTreeMap::from(wanted));
        assert_eq!(progress.jobs(|job| *job == Job::Open), [2]);
        let State::InProgress(progress) = ours(&[("saiga_build", "foreignKeys 3")]).unwrap() else {
            panic!("not begun")
        };
        assert_eq!(progress.stage, Stage::Step(Step::ForeignKeys, 3));
        assert_eq!(progress.stage.to_string(), "foreignKeys 3");
    }

    #[test]
    fn invalid_values_are_named() {
        let said = |found: Result<State, SqlError>| found.unwrap_err().to_string();
        assert_eq!(
            said(config(&[("warehouses", "x")])),
            "bmsql_config is invalid: warehouses is \"x\""
        );
        for (at, most) in [(1, 255), (2, 1023), (3, 8191)] {
            let with = |value: u32| {
                let mut rows = BENCHMARKSQL;
                let value = value.to_string();
                rows[at].1 = &value;
                config(&rows)
            };
            assert!(with(most).is_ok());
            let (name, beyond) = (BENCHMARKSQL[at].0, most + 1);
            assert_eq!(
                said(with(beyond)),
                format!("bmsql_config is invalid: {name} is \"{beyond}\"")
            );
        }
        assert_eq!(
            said(config(&[("saiga_build", "rows")])),
            "bmsql_config is invalid: saiga_seed is missing"
        );
        assert_eq!(
            said(ours(&[("saiga_build", "tableDrops 1")])),
            "bmsql_config is invalid: saiga_build is \"tableDrops 1\""
        );
        assert!(said(ours(&[("saiga_build", "rows"), ("saiga_job_x", "open")])).contains("job_x"));
    }

    #[test]
    fn an_owner_mark_cannot_end_the_sql_literal() {
        assert_eq!(quoted("db-7.x:11"), "'db-7.x:11'");
        assert_eq!(quoted("o'x\\"), "'ox'");
    }
}
