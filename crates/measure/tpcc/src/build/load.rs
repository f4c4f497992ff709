//! Loads rows: several sessions take jobs until none is left.
//!
//! Job 0 is ITEM, job N is warehouse N. One call of [`Session::load`] loads one table of a job; it
//! is repeated after a deadlock. The first error stops all sessions.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use super::plan::BuildRequest;
use super::{Build, BuildError, Event, job_lock, population, stopped};
use crate::db::rows::Rows;
use crate::db::{Session, SqlError};
use crate::population::{Population, Sink};
use crate::props::Engine;
use crate::state::{self, Job, LoadProgress};
use crate::table::Table;

/// Number of attempts to load a table before a deadlock is reported as an error.
const TRIES: u32 = 5;
/// Number of rows between two progress events.
const EVENT_ROWS: u64 = 2000;

/// Loads the open jobs of `progress` that are in the requested range.
pub(super) fn load(build: &Build<'_>, progress: &LoadProgress) -> Result<(), BuildError> {
    let population = population(&progress.info)?;
    let jobs = within(&progress.jobs(|job| *job == Job::Open), &build.request);
    let sessions = sessions(build, jobs.len())?;
    let warehouses = jobs.iter().filter(|job| **job > 0).count();
    (build.on_event)(Event::Loading {
        warehouses: u32::try_from(warehouses).unwrap_or(u32::MAX),
        workers: sessions.len(),
        seed: population.seed,
    });
    let before = Instant::now();
    let loaders = Loaders {
        build,
        population,
        jobs,
        next: AtomicUsize::new(0),
        failed: AtomicBool::new(false),
        has_reported_slow: AtomicBool::new(false),
        problem: Mutex::new(None),
    };
    thread::scope(|scope| {
        for session in sessions {
            let loaders = &loaders;
            scope.spawn(move || loaders.work(session));
        }
    });
    let problem = loaders
        .problem
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(problem) = problem {
        return Err(problem);
    }
    build.check_stop()?;
    (build.on_event)(Event::Loaded {
        took: before.elapsed(),
    });
    Ok(())
}

/// Opens one session per worker before the load, so that the load fails immediately if the server
/// does not accept so many sessions.
fn sessions(build: &Build<'_>, jobs: usize) -> Result<Vec<Box<dyn Session>>, BuildError> {
    let first = (build.open)()?;
    // SQLite has a single writer.
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

/// The jobs in the requested range. ITEM is loaded with warehouse 1.
fn within(jobs: &[u32], request: &BuildRequest) -> Vec<u32> {
    let (first, last) = request.range.unwrap_or((1, u32::MAX));
    let ours = |job: &u32| (first..=last).contains(&(*job).max(1));
    jobs.iter().copied().filter(ours).collect()
}

/// State that the loading threads share.
struct Loaders<'a> {
    build: &'a Build<'a>,
    population: Population,
    jobs: Vec<u32>,
    next: AtomicUsize,
    failed: AtomicBool,
    has_reported_slow: AtomicBool,
    problem: Mutex<Option<BuildError>>,
}

impl Loaders<'_> {
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

    /// Loads a job, unless another host has taken it.
    fn job(&self, session: &mut dyn Session, job: u32) -> Result<(), BuildError> {
        let is_locked = job_lock::try_lock(session, job);
        if !state::take(session, job, self.build.owner)? {
            if is_locked {
                job_lock::unlock(session, job);
            }
            return Ok(());
        }
        if !is_locked {
            job_lock::lock_waiting(session, job);
        }
        let loaded = self.tables_of(session, job);
        job_lock::unlock(session, job);
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
                return Ok(()); // The job keeps its mark. The next --resume resets it.
            }
        }
        if !state::done(session, job, self.build.owner)? {
            return Err(BuildError::Reassigned { job });
        }
        if job > 0 {
            (self.build.on_event)(Event::Warehouse(job));
        }
        Ok(())
    }

    fn report_if_slow(&self, session: &dyn Session) {
        if let Some(why) = session.slow_load()
            && !self.has_reported_slow.swap(true, Ordering::Relaxed)
        {
            (self.build.on_event)(Event::SlowLoad(why));
        }
    }

    fn table(&self, session: &mut dyn Session, table: Table, job: u32) -> Result<(), BuildError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let loaded = session.load(table, &mut |sink| {
                let mut sink = CountingSink {
                    sink,
                    loaders: self,
                    rows: 0,
                };
                match job {
                    0 => self.population.write_common(table, &mut sink)?,
                    w_id => self.population.write(table, w_id, &mut sink)?,
                }
                (self.build.on_event)(Event::Rows(sink.rows % EVENT_ROWS));
                Ok(())
            });
            match loaded {
                Ok(()) => {
                    self.report_if_slow(session);
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

/// A sink that reports progress and can be stopped.
struct CountingSink<'a, 'b> {
    sink: &'a mut dyn Sink<Error = SqlError>,
    loaders: &'a Loaders<'b>,
    rows: u64,
}

impl Sink for CountingSink<'_, '_> {
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
        if self.rows.is_multiple_of(EVENT_ROWS) {
            (self.loaders.build.on_event)(Event::Rows(EVENT_ROWS));
            if self.loaders.is_over() {
                return Err(stopped());
            }
        }
        self.sink.end_row()
    }
}

/// Resets jobs of the requested range that other processes left incomplete: takes them over,
/// deletes their rows, and opens them again.
pub(super) fn reset_jobs(
    session: &mut dyn Session,
    progress: &LoadProgress,
    request: &BuildRequest,
    owner: &str,
) -> Result<(), BuildError> {
    let taken = within(&progress.jobs(|job| matches!(job, Job::Taken(_))), request);
    job_lock::check_not_locked(session, progress, &taken, owner)?;
    let mut left = Vec::new();
    for job in taken {
        let Some(Job::Taken(by)) = progress.jobs.get(&job) else {
            continue;
        };
        // If the owner has completed the job since `progress` was read, its rows are kept.
        if state::reassign(session, job, by, owner)? {
            left.push(job);
        }
    }
    if left.contains(&0) {
        delete(session, Table::Item, "")?;
    }
    let warehouses: Vec<u32> = left.iter().copied().filter(|job| *job > 0).collect();
    // One statement per table, because without keys each statement reads the whole table.
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
        if !state::reopen(session, job, owner)? {
            return Err(BuildError::Reassigned { job });
        }
    }
    Ok(())
}

/// Deletes rows, including rows of a dead loader that the server has not committed yet. InnoDB's
/// DELETE waits for such rows. PostgreSQL's DELETE does not see them. There the table is locked
/// first, which waits for the loader's transaction.
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
        .map_err(|error| BuildError::DeleteRows { table, error })
}

fn listed(numbers: &[u32]) -> Option<String> {
    let texts: Vec<String> = numbers.iter().map(u32::to_string).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::BuildPart;
    use crate::db::sqlite::Sqlite;
    use crate::props::Url;
    use crate::script::{self, Step};
    use crate::state::State;

    const RESUME: BuildRequest = BuildRequest {
        part: BuildPart::Load,
        warehouses: 2,
        range: None,
        seed: None,
        resume: true,
        by_files: false,
    };

    /// Two warehouses in progress, each with one row.
    fn under_way() -> (Sqlite, LoadProgress) {
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
        for (w_id, owner) in [(1, "a:1"), (2, "b:2")] {
            run(
                &mut session,
                &format!("insert into bmsql_new_order values ({w_id}, 1, 2101)"),
            );
            assert_eq!(state::take(&mut session, w_id, owner), Ok(true));
        }
        let progress = progress(&mut session);
        (session, progress)
    }

    fn run(session: &mut Sqlite, sql: &str) {
        session.run(sql, &mut Rows::new()).unwrap();
    }

    fn progress(session: &mut Sqlite) -> LoadProgress {
        let State::InProgress(progress) = state::look(session).unwrap() else {
            panic!("a load was begun");
        };
        progress
    }

    /// The warehouses that have rows.
    fn there(session: &mut Sqlite) -> Vec<i64> {
        let (sql, mut rows) = ("select no_w_id from bmsql_new_order", Rows::new());
        session.run(sql, &mut rows).unwrap();
        (0..rows.len())
            .map(|row| rows.int(row, 0).unwrap())
            .collect()
    }

    #[test]
    fn a_job_completed_before_its_reset_keeps_its_rows() {
        let (mut session, before) = under_way();
        assert_eq!(state::done(&mut session, 1, "a:1"), Ok(true));
        reset_jobs(&mut session, &before, &RESUME, "c:3").unwrap();
        assert_eq!(there(&mut session), [1]);
        let jobs = progress(&mut session).jobs;
        assert_eq!((&jobs[&1], &jobs[&2]), (&Job::Done, &Job::Open));
    }

    #[test]
    fn a_job_reassigned_during_its_reset_is_not_opened() {
        let (mut session, before) = under_way();
        run(
            &mut session,
            "create trigger other after delete on bmsql_new_order begin \
             update bmsql_config set cfg_value = 'd:4' where cfg_name = 'saiga_job_2'; end",
        );
        let error = reset_jobs(&mut session, &before, &RESUME, "c:3").unwrap_err();
        assert!(
            matches!(error, BuildError::Reassigned { job: 2 }),
            "{error:?}"
        );
        assert_eq!(
            progress(&mut session).jobs[&2],
            Job::Taken("d:4".to_owned())
        );
    }
}
