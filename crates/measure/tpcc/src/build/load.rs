//! Loads rows: several sessions take jobs until none is left.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use super::plan::Asked;
use super::{Build, BuildError, Event, hold, population, stopped};
use crate::db::rows::Rows;
use crate::db::{Session, SqlError};
use crate::population::{Population, Sink};
use crate::props::Engine;
use crate::state::{self, Job, Ledger, Loaded};
use crate::table::Table;

/// How often a table is tried again after a deadlock.
const TRIES: u32 = 5;
/// Rows that are told of at a time.
const TOLD: u64 = 2000;

/// Loads what is open in `ledger` and may be loaded here.
pub(super) fn load(build: &Build<'_>, ledger: &Ledger) -> Result<(), BuildError> {
    let Loaded {
        origin: Some(origin),
        ..
    } = ledger.loaded
    else {
        return Ok(());
    };
    let Some(population) = population(&ledger.loaded) else {
        return Ok(());
    };
    let jobs = within(&ledger.jobs(|job| *job == Job::Open), &build.asked);
    let sessions = sessions(build, jobs.len())?;
    let warehouses = jobs.iter().filter(|job| **job > 0).count();
    (build.on)(Event::Loading {
        warehouses: u32::try_from(warehouses).unwrap_or(u32::MAX),
        workers: sessions.len(),
        seed: origin.seed,
    });
    let before = Instant::now();
    let crew = Crew {
        build,
        population,
        jobs,
        next: AtomicUsize::new(0),
        failed: AtomicBool::new(false),
        has_told_slow: AtomicBool::new(false),
        problem: Mutex::new(None),
    };
    thread::scope(|scope| {
        for session in sessions {
            let crew = &crew;
            scope.spawn(move || crew.work(session));
        }
    });
    let problem = crew
        .problem
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(problem) = problem {
        return Err(problem);
    }
    build.go_on()?;
    (build.on)(Event::Loaded {
        took: before.elapsed(),
    });
    Ok(())
}

/// One session for each worker, before anything is loaded: a server that has no room for them says
/// so at once.
fn sessions(build: &Build<'_>, jobs: usize) -> Result<Vec<Box<dyn Session>>, BuildError> {
    let first = (build.open)()?;
    // SQLite has one writer at a time.
    let workers = match first.server().engine {
        Engine::Sqlite => 1,
        Engine::MySql | Engine::Postgres | Engine::OpenGauss => build.workers as usize,
    };
    let mut sessions = vec![first];
    while sessions.len() < workers.min(jobs) {
        sessions.push((build.open)()?);
    }
    Ok(sessions)
}

/// Jobs of the range that was asked for. ITEM goes with the first warehouse.
fn within(jobs: &[u32], asked: &Asked) -> Vec<u32> {
    let (first, last) = asked.range.unwrap_or((1, u32::MAX));
    let ours = |job: &u32| (first..=last).contains(&(*job).max(1));
    jobs.iter().copied().filter(ours).collect()
}

/// What the workers share.
struct Crew<'a> {
    build: &'a Build<'a>,
    population: Population,
    jobs: Vec<u32>,
    next: AtomicUsize,
    failed: AtomicBool,
    has_told_slow: AtomicBool,
    problem: Mutex<Option<BuildError>>,
}

impl Crew<'_> {
    fn work(&self, mut session: Box<dyn Session>) {
        while !self.is_over() {
            let Some(job) = self.jobs.get(self.next.fetch_add(1, Ordering::Relaxed)) else {
                return;
            };
            if let Err(problem) = self.job(&mut *session, *job) {
                self.failed.store(true, Ordering::Relaxed);
                let mut first = self
                    .problem
                    .lock()
                    .unwrap_or_else(|poisoned| poisoned.into_inner());
                first.get_or_insert(problem);
                return;
            }
        }
    }

    fn is_over(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || (self.build.stop)()
    }

    /// One job, unless another host has it.
    fn job(&self, session: &mut dyn Session, job: u32) -> Result<(), BuildError> {
        let is_held = hold::hold(session, job);
        if !state::take(session, job, self.build.who)? {
            if is_held {
                hold::release(session, job);
            }
            return Ok(());
        }
        if !is_held {
            hold::hold_at_last(session, job);
        }
        let loaded = self.tables_of(session, job);
        hold::release(session, job);
        loaded
    }

    fn tables_of(&self, session: &mut dyn Session, job: u32) -> Result<(), BuildError> {
        let tables = if job == 0 {
            &[Table::Item][..]
        } else {
            &Table::OF_WAREHOUSE
        };
        for table in tables {
            self.table(session, *table, job)?;
            if self.is_over() {
                return Ok(()); // The job stays ours, to be taken back.
            }
        }
        if !state::done(session, job, self.build.who)? {
            return Err(BuildError::TakenBack { job });
        }
        if job > 0 {
            (self.build.on)(Event::Warehouse(job));
        }
        Ok(())
    }

    fn tell_if_slow(&self, session: &dyn Session) {
        if let Some(why) = session.slow_load()
            && !self.has_told_slow.swap(true, Ordering::Relaxed)
        {
            (self.build.on)(Event::SlowLoad(why));
        }
    }

    fn table(&self, session: &mut dyn Session, table: Table, job: u32) -> Result<(), BuildError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let loaded = session.load(table, &mut |sink| {
                let mut told = Told {
                    sink,
                    crew: self,
                    rows: 0,
                };
                match job {
                    0 => self.population.write_common(table, &mut told)?,
                    w_id => self.population.write(table, w_id, &mut told)?,
                }
                (self.build.on)(Event::Rows(told.rows % TOLD));
                Ok(())
            });
            match loaded {
                Ok(()) => {
                    self.tell_if_slow(session);
                    return Ok(());
                }
                Err(_) if self.is_over() => return Ok(()),
                Err(SqlError::Conflict { .. }) if tries < TRIES => {}
                Err(error) => {
                    return Err(BuildError::Load {
                        table,
                        w_id: job,
                        error,
                    });
                }
            }
        }
    }
}

/// A sink that counts, and that can be stopped.
struct Told<'a, 'b> {
    sink: &'a mut dyn Sink<Error = SqlError>,
    crew: &'a Crew<'b>,
    rows: u64,
}

impl Sink for Told<'_, '_> {
    type Error = SqlError;

    fn int(&mut self, value: i64) {
        self.sink.int(value);
    }

    fn decimal(&mut self, units: i64, scale: u32) {
        self.sink.decimal(units, scale);
    }

    fn text(&mut self, value: &str) {
        self.sink.text(value);
    }

    fn time(&mut self, seconds: i64) {
        self.sink.time(seconds);
    }

    fn null(&mut self) {
        self.sink.null();
    }

    fn end_row(&mut self) -> Result<(), SqlError> {
        self.rows += 1;
        if self.rows.is_multiple_of(TOLD) {
            (self.crew.build.on)(Event::Rows(TOLD));
            if self.crew.is_over() {
                return Err(stopped());
            }
        }
        self.sink.end_row()
    }
}

/// Takes over jobs that somebody has begun and not ended, removes their rows, and opens them.
pub(super) fn take_back(
    session: &mut dyn Session,
    ledger: &Ledger,
    asked: &Asked,
    who: &str,
) -> Result<(), BuildError> {
    let taken = within(&ledger.jobs(|job| matches!(job, Job::Taken(_))), asked);
    hold::check_nobody_holds(session, ledger, &taken, who)?;
    let mut left = Vec::new();
    for job in taken {
        let Some(Job::Taken(by)) = ledger.jobs.get(&job) else {
            continue;
        };
        // Its owner may have ended it since it was looked at: its rows are whole then, and stay.
        if state::inherit(session, job, by, who)? {
            left.push(job);
        }
    }
    if left.contains(&0) {
        delete(session, Table::Item, "")?;
    }
    let warehouses: Vec<u32> = left.iter().copied().filter(|job| *job > 0).collect();
    // All at once: without keys each statement reads the whole table.
    if let Some(list) = listed(&warehouses) {
        for table in Table::OF_WAREHOUSE.into_iter().rev() {
            let column = match table {
                Table::History => "h_w_id",
                Table::Config
                | Table::Item
                | Table::Warehouse
                | Table::District
                | Table::Stock
                | Table::Customer
                | Table::Order
                | Table::OrderLine
                | Table::NewOrder => table.columns()[0],
            };
            delete(session, table, &format!(" where {column} in ({list})"))?;
        }
    }
    for job in left {
        if !state::reopen(session, job, who)? {
            return Err(BuildError::TakenBack { job });
        }
    }
    Ok(())
}

/// Deletes rows, also those that a dead loader has sent and the server has not committed yet. InnoDB's
/// DELETE waits for them. PostgreSQL's neither sees them nor waits, so that the table's lock has to.
fn delete(session: &mut dyn Session, table: Table, condition: &str) -> Result<(), BuildError> {
    let name = table.name();
    let lock = match session.server().engine {
        Engine::Postgres | Engine::OpenGauss => {
            format!("lock table {name} in share row exclusive mode; ")
        }
        Engine::MySql | Engine::Sqlite => String::new(),
    };
    // One query of the simple protocol is one transaction.
    let sql = format!("{lock}delete from {name}{condition}");
    let deleted = session.run(&sql, &mut Rows::new());
    deleted
        .map(|_| ())
        .map_err(|error| BuildError::TakeBack { table, error })
}

fn listed(numbers: &[u32]) -> Option<String> {
    let texts: Vec<String> = numbers.iter().map(u32::to_string).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::Part;
    use crate::db::sqlite::Sqlite;
    use crate::props::Url;
    use crate::script::{self, Step};
    use crate::state::State;

    const RESUME: Asked = Asked {
        part: Part::Load,
        warehouses: 2,
        range: None,
        seed: None,
        resume: true,
        by_files: false,
    };

    /// Two warehouses with a row each, both under way.
    fn under_way() -> (Sqlite, Ledger) {
        let mut session = Sqlite::open(&Url::parse("jdbc:sqlite::memory:").unwrap()).unwrap();
        let tables = script::find(None, "sqlite", Step::TableCreates).unwrap();
        for sql in tables.statements {
            run(&mut session, &sql);
        }
        let population = Population::new(1, RESUME.warehouses, 2);
        session
            .load(Table::Config, &mut |sink| {
                state::write(&population, state::Stage::Rows, sink)
            })
            .unwrap();
        for (w_id, who) in [(1, "a:1"), (2, "b:2")] {
            run(
                &mut session,
                &format!("insert into bmsql_new_order values ({w_id}, 1, 2101)"),
            );
            assert_eq!(state::take(&mut session, w_id, who), Ok(true));
        }
        let ledger = ledger(&mut session);
        (session, ledger)
    }

    fn run(session: &mut Sqlite, sql: &str) {
        session.run(sql, &mut Rows::new()).unwrap();
    }

    fn ledger(session: &mut Sqlite) -> Ledger {
        let State::Begun(ledger) = state::look(session).unwrap() else {
            panic!("a load was begun");
        };
        ledger
    }

    /// Warehouses that have rows.
    fn there(session: &mut Sqlite) -> Vec<i64> {
        let (sql, mut rows) = ("select no_w_id from bmsql_new_order", Rows::new());
        session.run(sql, &mut rows).unwrap();
        (0..rows.len())
            .map(|row| rows.int(row, 0).unwrap())
            .collect()
    }

    #[test]
    fn a_job_that_ends_before_it_is_taken_back_keeps_its_rows() {
        let (mut session, before) = under_way();
        assert_eq!(state::done(&mut session, 1, "a:1"), Ok(true));
        take_back(&mut session, &before, &RESUME, "c:3").unwrap();
        assert_eq!(there(&mut session), [1]);
        let jobs = ledger(&mut session).jobs;
        assert_eq!((&jobs[&1], &jobs[&2]), (&Job::Done, &Job::Open));
    }

    #[test]
    fn a_job_that_another_takes_over_meanwhile_is_not_opened() {
        let (mut session, before) = under_way();
        run(
            &mut session,
            "create trigger other after delete on bmsql_new_order begin \
             update bmsql_config set cfg_value = 'd:4' where cfg_name = 'saiga_job_2'; end",
        );
        let error = take_back(&mut session, &before, &RESUME, "c:3").unwrap_err();
        assert!(
            matches!(error, BuildError::TakenBack { job: 2 }),
            "{error:?}"
        );
        assert_eq!(ledger(&mut session).jobs[&2], Job::Taken("d:4".to_owned()));
    }
}
