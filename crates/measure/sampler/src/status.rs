//! Status variables of databases as columns of the rows.
//!
//! Each source is read by its own thread, so that a database that hangs does not delay the rows.
//! The thread reads a tenth of the interval before a row is due, so that the row has recent values.
//!
//! Deliberately absent: connections. The crates that know the databases implement the sources.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::deadline;
use crate::table::{Column, Table};

/// Maximum time that the end of a run waits for a running read.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// Kind of a status variable, which decides its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Increases; its column `db_LABEL_NAME_s` has the rate per second.
    Counter,
    /// Goes up and down; its column `db_LABEL_NAME` has the value. The name should end in a unit.
    Gauge,
}

/// A status variable of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// The name in the database.
    pub name: String,
    pub kind: Kind,
}

/// An error of the database's client.
pub type ReadError = Box<dyn Error + Send + Sync>;

/// Reads the status variables of one database.
pub trait StatusSource: Send {
    /// Label of the database in the names of metrics: `mysql`, `pg2`.
    fn label(&self) -> &str;

    /// The variables. They must not change during the run.
    fn names(&self) -> &[Variable];

    /// The current values in the order of [`Self::names`]; unknown values are NaN.
    ///
    /// Must return within about a second, even if the database does not answer, and must reconnect
    /// after a restart of the database.
    ///
    /// # Errors
    /// The database did not answer. The row has no values, and the next row reads again.
    fn read(&mut self) -> Result<Vec<f64>, ReadError>;
}

impl fmt::Debug for dyn StatusSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StatusSource({})", self.label())
    }
}

/// The values of one read.
#[derive(Debug, Clone)]
struct Reading {
    at_s: f64,
    values: Vec<f64>,
}

#[derive(Debug, Default)]
struct State {
    stop: bool,
    ended: bool,
    newest: Option<Reading>,
    failed: u64,
    first_failure: Option<String>,
    cpu_s: f64,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    /// Ignores poisoning: the state is consistent even if a reader panicked.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread that reads one source, and the columns of the source.
#[derive(Debug)]
pub(crate) struct StatusReader {
    label: String,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    columns: Columns,
}

impl StatusReader {
    /// Creates the columns and starts the thread.
    pub(crate) fn start(
        source: Box<dyn StatusSource>,
        start: Instant,
        interval: Duration,
        table: &mut Table,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let label = source.label().to_owned();
        let columns = Columns::new(&label, source.names(), table);
        let thread = thread::Builder::new().name("saiga-status".into()).spawn({
            let shared = Arc::clone(&shared);
            move || read_until_stopped(source, start, interval, &shared)
        })?;
        Ok(Self {
            label,
            shared,
            thread: Some(thread),
            columns,
        })
    }

    /// Fills a row with the values that were read since the last row, if any.
    pub(crate) fn sample(&mut self, table: &mut Table) {
        let reading = self.shared.lock().newest.take();
        if let Some(reading) = reading {
            self.columns.fill(&reading, table);
        }
    }

    /// CPU seconds of the thread so far.
    pub(crate) fn cpu_s(&self) -> f64 {
        self.shared.lock().cpu_s
    }

    /// Ends the thread; returns a warning if reads have failed. Does not wait for a read that
    /// hangs.
    pub(crate) fn stop(mut self) -> Option<String> {
        self.request_stop();
        let waited =
            self.shared
                .changed
                .wait_timeout_while(self.shared.lock(), STOP_TIMEOUT, |state| !state.ended);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let (ended, failed) = (state.ended, state.failed);
        let first = state.first_failure.clone().unwrap_or_default();
        drop(state);
        if let Some(thread) = self.thread.take().filter(|_| ended) {
            // The thread has set `ended` as its last action, so it has not panicked.
            let _ = thread.join();
        }
        let label = &self.label;
        (failed > 0).then(|| {
            format!("status of {label}: {failed} reads failed; the first error was: {first}")
        })
    }
}

impl StatusReader {
    fn request_stop(&self) {
        self.shared.lock().stop = true;
        self.shared.changed.notify_all();
    }
}

impl Drop for StatusReader {
    /// Ends the thread when a later step of [`crate::Sampler::start`] has failed.
    fn drop(&mut self) {
        self.request_stop();
    }
}

fn read_until_stopped(
    mut source: Box<dyn StatusSource>,
    start: Instant,
    interval: Duration,
    shared: &Shared,
) {
    let expected = source.names().len();
    let lead = interval / 10;
    let mut state = shared.lock();
    while !state.stop {
        drop(state);
        let read = source.read();
        let at_s = start.elapsed().as_secs_f64();
        state = shared.lock();
        match read {
            Ok(values) if values.len() == expected => {
                state.newest = Some(Reading { at_s, values });
            }
            Ok(values) => state.fail(&format!("{} values for {expected} names", values.len())),
            Err(error) => state.fail(&error.to_string()),
        }
        state.cpu_s = thread_cpu_s();
        let due = deadline::next(start.elapsed() + lead, interval).saturating_sub(lead);
        let left = due.saturating_sub(start.elapsed());
        let waited = shared
            .changed
            .wait_timeout_while(state, left, |state| !state.stop);
        (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
    }
    drop(source); // Closes the connection before `ended` is set.
    state.ended = true;
    shared.changed.notify_all();
}

impl State {
    fn fail(&mut self, reason: &str) {
        self.failed += 1;
        self.first_failure.get_or_insert_with(|| reason.to_owned());
    }
}

/// CPU seconds of the calling thread.
pub(crate) fn thread_cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[derive(Debug)]
struct Columns {
    columns: Vec<(Column, Kind)>,
    before: Option<Reading>,
}

impl Columns {
    fn new(label: &str, variables: &[Variable], table: &mut Table) -> Self {
        let mut column = |variable: &Variable| {
            let name = match variable.kind {
                Kind::Counter => format!("db_{label}_{}_s", variable.name),
                Kind::Gauge => format!("db_{label}_{}", variable.name),
            };
            (table.column(&name), variable.kind)
        };
        Self {
            columns: variables.iter().map(&mut column).collect(),
            before: None,
        }
    }

    fn fill(&mut self, now: &Reading, table: &mut Table) {
        let before = self.before.replace(now.clone());
        for (index, (column, kind)) in self.columns.iter().enumerate() {
            let value = match kind {
                Kind::Gauge => now.values.get(index).copied(),
                Kind::Counter => before.as_ref().and_then(|before| rate(before, now, index)),
            };
            table.put(*column, value);
        }
    }
}

/// The rate of a counter; `None` if it has decreased, because the server was restarted.
fn rate(before: &Reading, now: &Reading, index: usize) -> Option<f64> {
    let events = now.values.get(index)? - before.values.get(index)?;
    let seconds = now.at_s - before.at_s;
    (events >= 0.0 && seconds > 0.0).then(|| events / seconds)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    fn variable(name: &str, kind: Kind) -> Variable {
        Variable {
            name: name.into(),
            kind,
        }
    }

    #[test]
    fn counters_become_rates_and_gauges_stay() {
        let mut table = Table::default();
        let names = [
            variable("Com_commit", Kind::Counter),
            variable("Threads_running", Kind::Gauge),
        ];
        let mut columns = Columns::new("mysql", &names, &mut table);
        assert_eq!(
            table.names(),
            ["db_mysql_Com_commit_s", "db_mysql_Threads_running"]
        );
        for (what, at_s, values, cells) in [
            ("first", 1.0, [100.0, 3.0], [None, Some(3.0)]),
            ("forward", 3.0, [300.0, 2.0], [Some(100.0), Some(2.0)]),
            ("restarted", 4.0, [5.0, 1.0], [None, Some(1.0)]),
            ("unknown", 5.0, [f64::NAN, f64::NAN], [None, None]),
        ] {
            let values = values.to_vec();
            columns.fill(&Reading { at_s, values }, &mut table);
            assert_eq!(table.cells(), cells, "{what}");
        }
    }

    /// Reports each read to the test and returns the answers that the test sends.
    struct Scripted {
        names: Vec<Variable>,
        reads: Sender<()>,
        answers: Receiver<Result<Vec<f64>, ReadError>>,
    }

    impl StatusSource for Scripted {
        fn label(&self) -> &str {
            "db1"
        }

        fn names(&self) -> &[Variable] {
            &self.names
        }

        fn read(&mut self) -> Result<Vec<f64>, ReadError> {
            // Fails after the end of the test.
            let _ = self.reads.send(());
            self.answers.recv().unwrap_or_else(|gone| Err(gone.into()))
        }
    }

    #[test]
    fn a_source_that_fails_is_read_again_and_reported_once() {
        let (reads, read) = channel();
        let (answer, answers) = channel();
        let source = Scripted {
            names: vec![variable("up", Kind::Gauge)],
            reads,
            answers,
        };
        let mut table = Table::default();
        let interval = Duration::from_millis(1);
        let mut reader =
            StatusReader::start(Box::new(source), Instant::now(), interval, &mut table).unwrap();
        answer.send(Err("server has gone away".into())).unwrap();
        answer.send(Ok(vec![1.0, 2.0])).unwrap();
        answer.send(Ok(vec![7.0])).unwrap();
        for _ in 0..4 {
            read.recv().unwrap(); // The fourth read waits until `answer` is dropped.
        }
        reader.sample(&mut table);
        assert_eq!(table.cells(), [Some(7.0)]);
        drop(answer);
        let warning = reader.stop().unwrap();
        let expected = "reads failed; the first error was: server has gone away";
        assert!(
            warning.starts_with("status of db1: ") && warning.ends_with(expected),
            "{warning}"
        );
    }
}
