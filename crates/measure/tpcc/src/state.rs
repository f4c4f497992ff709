//! What a database holds of TPC-C: nothing, a load that is not complete, or all of it.
//!
//! A load writes into `bmsql_config` how far it is, so that a half-loaded database is never taken
//! for a whole one and can be completed. Beside the rows of BenchmarkSQL it has `saiga_build`
//! (how far), `saiga_seed` and `saiga_time` (from which all rows follow), and while rows are loaded
//! `saiga_job_N` for each job: job 0 is ITEM, job n warehouse n, as in BenchmarkSQL.

use std::collections::BTreeMap;
use std::fmt;

use crate::db::rows::Rows;
use crate::db::{Session, SqlError};
use crate::population::{Population, Sink};
use crate::props::Engine;
use crate::script::Step;
use crate::spec::nurand::Constants;
use crate::table::Table;

/// What is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// None of the tables.
    Empty {
        /// Tables that other TPC-C tools make.
        strangers: Vec<String>,
    },
    /// Some of the tables, without `bmsql_config`: not made by us, nor by BenchmarkSQL.
    NotOurs {
        /// Those that are there.
        tables: Vec<Table>,
    },
    /// Some of the tables, `bmsql_config` among them.
    Torn {
        /// Those that are missing.
        missing: Vec<Table>,
    },
    /// All tables, and nothing in `bmsql_config`.
    Blank,
    /// A load of ours that is not complete.
    Begun(Ledger),
    /// All of it, as far as whoever loaded it says.
    Complete(Loaded),
}

/// What a load says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loaded {
    /// How many warehouses there are, or are to be.
    pub warehouses: u32,
    /// The constants of NURand.
    pub constants: Constants,
    /// From which all rows follow; `None` when BenchmarkSQL loaded it.
    pub origin: Option<Origin>,
}

/// From which all rows follow, beside the number of warehouses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// As given to [`Population`].
    pub seed: u64,
    /// In seconds since 1970, as given to [`Population`].
    pub time: i64,
}

/// How far a load is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ledger {
    /// What it says about itself.
    pub loaded: Loaded,
    /// How far.
    pub stage: Stage,
    /// Its jobs, while rows are loaded.
    pub jobs: BTreeMap<u32, Job>,
}

/// How far a load is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Rows are loaded.
    Rows,
    /// All rows are there; so many statements of this step are done.
    Step(Step, usize),
}

/// How far a job is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    /// Nobody has begun it.
    Open,
    /// Somebody has, and has not ended it: its mark, as [`build::owner`](crate::build::owner) has it.
    Taken(String),
    /// Its rows are there.
    Done,
}

/// Names in `bmsql_config`.
const BUILD: &str = "saiga_build";
const SEED: &str = "saiga_seed";
const TIME: &str = "saiga_time";
const JOB: &str = "saiga_job_";
/// Values there.
const ROWS: &str = "rows";
const COMPLETE: &str = "complete";
const OPEN: &str = "open";
const DONE: &str = "done";

/// Tables of other tools: go-tpc, sysbench-tpcc, HammerDB, BenchBase, BenchmarkSQL 4.
const STRANGERS: [&str; 9] = [
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

/// What else may have made a table seem to be missing.
pub const NOT_SHOWN: &str =
    "if they are there, GRANT the user of user= its rights on them; if not, ";

/// Looks.
///
/// # Errors
/// [`SqlError`]; [`SqlError::Unexpected`] when `bmsql_config` makes no sense.
pub fn look(session: &mut dyn Session) -> Result<State, SqlError> {
    let mut rows = Rows::new();
    let names = table_names(session, &mut rows)?;
    let (present, missing): (Vec<_>, Vec<_>) = Table::ALL
        .into_iter()
        .partition(|table| names.iter().any(|name| name == table.name()));
    if present.is_empty() {
        let known = names
            .into_iter()
            .filter(|name| STRANGERS.contains(&name.as_str()));
        return Ok(State::Empty {
            strangers: known.collect(),
        });
    }
    if missing.contains(&Table::Config) {
        return Ok(State::NotOurs { tables: present });
    }
    if !missing.is_empty() {
        return Ok(State::Torn { missing });
    }
    session.run("select cfg_name, cfg_value from bmsql_config", &mut rows)?;
    of_config(&rows)
}

/// Names of the tables in this database, in lower case. MySQL tells a user of those alone to which
/// it has rights; PostgreSQL's catalog has all, other than `information_schema`.
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
        return Ok(State::Blank);
    }
    let build = values.get(BUILD).copied();
    let origin = match build {
        None => None,
        Some(_) => Some(Origin {
            seed: number(&values, SEED)?,
            time: number(&values, TIME)?,
        }),
    };
    let loaded = Loaded {
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
        Some(text) => step(text).ok_or_else(|| nonsense(BUILD, Some(text)))?,
    };
    let jobs = values.iter().filter_map(|(name, value)| {
        let number = name.strip_prefix(JOB)?;
        Some(
            number
                .parse()
                .map(|n| (n, job(value)))
                .map_err(|_| nonsense(name, Some(value))),
        )
    });
    let jobs = jobs.collect::<Result<_, _>>()?;
    Ok(State::Begun(Ledger {
        loaded,
        stage,
        jobs,
    }))
}

fn number<T: std::str::FromStr>(values: &BTreeMap<&str, &str>, name: &str) -> Result<T, SqlError> {
    let value = values.get(name).copied();
    let number = value.and_then(|value| value.trim().parse().ok());
    number.ok_or_else(|| nonsense(name, value))
}

/// A constant above its range (§2.1.6.1) would leave a run without any of its own.
fn number_up_to(most: u32, values: &BTreeMap<&str, &str>, name: &str) -> Result<u32, SqlError> {
    let number = number(values, name)?;
    if number > most {
        return Err(nonsense(name, values.get(name).copied()));
    }
    Ok(number)
}

fn nonsense(name: &str, value: Option<&str>) -> SqlError {
    let found = value.map_or("is missing".to_owned(), |value| format!("is {value:?}"));
    SqlError::Unexpected {
        what: format!("bmsql_config makes no sense: {name} {found}"),
    }
}

fn job(value: &str) -> Job {
    match value {
        OPEN => Job::Open,
        DONE => Job::Done,
        who => Job::Taken(who.to_owned()),
    }
}

/// `indexCreates 3`.
fn step(text: &str) -> Option<Stage> {
    let (name, done) = text.split_once(' ')?;
    let step = Step::AFTER_LOAD
        .into_iter()
        .find(|step| step.name() == name)?;
    Some(Stage::Step(step, done.parse().ok()?))
}

impl fmt::Display for State {
    /// What is there, and the way to a database that can be used.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty { strangers } if strangers.is_empty() => {
                f.write_str("there are no tables; `saiga bench tpcc build` makes and loads them")
            }
            Self::Empty { strangers } => write!(
                f,
                "it has tables of another TPC-C tool ({}) and none of BenchmarkSQL's; `saiga bench \
                 tpcc build` makes those beside them",
                strangers.join(", ")
            ),
            Self::NotOurs { tables } => write!(
                f,
                "it has {}, but no bmsql_config: neither Saiga nor BenchmarkSQL made that",
                Table::list(tables)
            ),
            Self::Torn { missing } => write!(
                f,
                "these tables are missing: {}; {NOT_SHOWN}destroy the rest, then build again",
                Table::list(missing)
            ),
            Self::Blank => f.write_str(
                "the tables are there and bmsql_config is empty: the load was not begun; destroy \
                 and build again",
            ),
            Self::Begun(ledger) => write!(
                f,
                "{}; go on with `saiga bench tpcc build --resume`, or destroy it",
                ledger.in_words()
            ),
            Self::Complete(loaded) => write!(f, "{} warehouses are loaded", loaded.warehouses),
        }
    }
}

impl fmt::Display for Stage {
    /// As in `bmsql_config`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows => f.write_str(ROWS),
            Self::Step(step, done) => write!(f, "{} {done}", step.name()),
        }
    }
}

/// Writes the rows of `bmsql_config` for a load at this stage.
///
/// # Errors
/// Those of the sink.
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

/// Takes a job that is open, in the name of `who`; `false` when somebody else has it.
///
/// # Errors
/// [`SqlError`].
pub fn take(session: &mut dyn Session, job: u32, who: &str) -> Result<bool, SqlError> {
    set_job(session, job, OPEN, who)
}

/// A job of `who` is done; `false` when it was taken back meanwhile.
///
/// # Errors
/// [`SqlError`].
pub fn done(session: &mut dyn Session, job: u32, who: &str) -> Result<bool, SqlError> {
    set_job(session, job, who, DONE)
}

/// A job that `from` has left becomes that of `who`; `false` when it is done meanwhile, or another's.
///
/// # Errors
/// [`SqlError`].
pub fn inherit(
    session: &mut dyn Session,
    job: u32,
    from: &str,
    who: &str,
) -> Result<bool, SqlError> {
    set_job(session, job, from, who)
}

/// A job of `who`, whose rows are gone, is open again.
///
/// # Errors
/// [`SqlError`].
pub fn reopen(session: &mut dyn Session, job: u32, who: &str) -> Result<bool, SqlError> {
    set_job(session, job, who, OPEN)
}

fn set_job(session: &mut dyn Session, job: u32, from: &str, to: &str) -> Result<bool, SqlError> {
    let (from, to) = (quoted(from), quoted(to));
    let sql = format!(
        "update bmsql_config set cfg_value = {to} \
         where cfg_name = '{JOB}{job}' and cfg_value = {from}"
    );
    loop {
        match session.run(&sql, &mut Rows::new()) {
            // Two that want the same job: the server lets one of them look again.
            Err(SqlError::Conflict { .. }) => {}
            other => return Ok(other? == 1),
        }
    }
}

/// The load is at this stage. Jobs end with the rows.
///
/// # Errors
/// [`SqlError`].
pub fn advance(session: &mut dyn Session, stage: Stage) -> Result<(), SqlError> {
    set_build(session, &stage.to_string())?;
    if stage == Stage::Step(Step::IndexCreates, 0) {
        let sql = format!("delete from bmsql_config where cfg_name like '{JOB}%'");
        session.run(&sql, &mut Rows::new())?;
    }
    Ok(())
}

/// Everything is there.
///
/// # Errors
/// [`SqlError`].
pub fn complete(session: &mut dyn Session) -> Result<(), SqlError> {
    set_build(session, COMPLETE)
}

fn set_build(session: &mut dyn Session, value: &str) -> Result<(), SqlError> {
    let sql = format!("update bmsql_config set cfg_value = '{value}' where cfg_name = '{BUILD}'");
    session.run(&sql, &mut Rows::new()).map(|_| ())
}

/// A text as SQL has it. Names of hosts have letters, digits, dots and hyphens.
fn quoted(text: &str) -> String {
    let plain = |c: &char| c.is_ascii_alphanumeric() || ".-:_".contains(*c);
    format!("'{}'", text.chars().filter(plain).collect::<String>())
}

impl Ledger {
    /// How far it is.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self.stage {
            Stage::Rows => {
                let done = self
                    .jobs(|job| *job == Job::Done)
                    .into_iter()
                    .filter(|job| *job > 0);
                let (done, all) = (done.count(), self.loaded.warehouses);
                format!("it is half loaded: {done} of {all} warehouses are there")
            }
            Stage::Step(step, done) => format!(
                "all rows are there, but the build is not complete: {done} statements of {} were run",
                step.name()
            ),
        }
    }

    /// Numbers of the jobs in a state that `which` knows.
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
    fn a_load_of_benchmarksql_is_believed() {
        let constants = Constants {
            last_name: 7,
            customer: 8,
            item: 9,
        };
        let loaded = Loaded {
            warehouses: 2,
            constants,
            origin: None,
        };
        assert_eq!(config(&BENCHMARKSQL), Ok(State::Complete(loaded)));
        assert_eq!(config(&[]), Ok(State::Blank));
    }

    #[test]
    fn our_loads_say_how_far_they_are() {
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
        let State::Begun(ledger) = ours(&jobs).unwrap() else {
            panic!("not begun")
        };
        assert_eq!(ledger.stage, Stage::Rows);
        let wanted = [
            (0, Job::Done),
            (1, Job::Taken("db7:11".to_owned())),
            (2, Job::Open),
        ];
        assert_eq!(ledger.jobs, BTreeMap::from(wanted));
        assert_eq!(ledger.jobs(|job| *job == Job::Open), [2]);
        let State::Begun(ledger) = ours(&[("saiga_build", "foreignKeys 3")]).unwrap() else {
            panic!("not begun")
        };
        assert_eq!(ledger.stage, Stage::Step(Step::ForeignKeys, 3));
        assert_eq!(ledger.stage.to_string(), "foreignKeys 3");
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let said = |found: Result<State, SqlError>| found.unwrap_err().to_string();
        assert_eq!(
            said(config(&[("warehouses", "x")])),
            "bmsql_config makes no sense: warehouses is \"x\""
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
                format!("bmsql_config makes no sense: {name} is \"{beyond}\"")
            );
        }
        assert_eq!(
            said(config(&[("saiga_build", "rows")])),
            "bmsql_config makes no sense: saiga_seed is missing"
        );
        assert_eq!(
            said(ours(&[("saiga_build", "tableDrops 1")])),
            "bmsql_config makes no sense: saiga_build is \"tableDrops 1\""
        );
        assert!(said(ours(&[("saiga_build", "rows"), ("saiga_job_x", "open")])).contains("job_x"));
    }

    #[test]
    fn who_takes_a_job_cannot_end_the_statement() {
        assert_eq!(quoted("db-7.x:11"), "'db-7.x:11'");
        assert_eq!(quoted("o'x\\"), "'ox'");
    }
}
