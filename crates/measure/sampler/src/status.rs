//! Status of databases beside the host: who brings it, and the thread that reads it.
//!
//! A database that hangs must not stop the host's rows, so each source is read by a thread
//! of its own, a tenth of the interval before a row is due, so that the row has it.
//!
//! Deliberately absent: connections. The crates that know the databases make sources.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::deadline;
use crate::table::{Column, Table};

/// How long the end of a run waits for a read that is under way.
const PATIENCE: Duration = Duration::from_secs(1);

/// What becomes of a status variable in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Counts up; the row has its rate: `db_LABEL_NAME_s`.
    Counter,
    /// Is a level; the row has it as it is: `db_LABEL_NAME`. Put the unit last in its name.
    Gauge,
}

/// A status variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name as the database has it.
    pub name: String,
    /// What becomes of it.
    pub kind: Kind,
}

/// Why a read failed, in the words of the database's client.
pub type ReadError = Box<dyn Error + Send + Sync>;

/// Brings the status of one database.
pub trait StatusSource: Send {
    /// Which database, for the metrics' names: `mysql`, `pg2`.
    fn label(&self) -> &str;

    /// The variables; they stay the same from the start to the end.
    fn names(&self) -> &[Variable];

    /// Their values now, in the same order; what is not known is not a number.
    ///
    /// Comes back within a second or so even when the database does not answer, and connects
    /// again by itself after a restart.
    ///
    /// # Errors
    /// The database did not answer. The row has no values then; the next one asks again.
    fn read(&mut self) -> Result<Vec<f64>, ReadError>;
}

impl fmt::Debug for dyn StatusSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StatusSource({})", self.label())
    }
}

/// One look at a database.
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
    /// A reader that panicked has nothing half done in here.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The columns of one source and the thread that fills them.
#[derive(Debug)]
pub(crate) struct Feed {
    label: String,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    columns: Columns,
}

impl Feed {
    /// Starts to read.
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

    /// Fills a row with what was read since the last one.
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

    /// Ends the thread; answers what a user should know. A read that hangs is left behind.
    pub(crate) fn stop(mut self) -> Option<String> {
        self.tell_to_stop();
        let waited =
            self.shared
                .changed
                .wait_timeout_while(self.shared.lock(), PATIENCE, |state| !state.ended);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let (ended, failed) = (state.ended, state.failed);
        let first = state.first_failure.clone().unwrap_or_default();
        drop(state);
        if let Some(thread) = self.thread.take().filter(|_| ended) {
            // It set `ended` as its last act: it did not panic.
            let _ = thread.join();
        }
        let label = &self.label;
        (failed > 0).then(|| format!("status of {label}: {failed} reads failed, first: {first}"))
    }
}

impl Feed {
    fn tell_to_stop(&self) {
        self.shared.lock().stop = true;
        self.shared.changed.notify_all();
    }
}

impl Drop for Feed {
    /// When sampling could not begin, nobody stops what has begun already.
    fn drop(&mut self) {
        self.tell_to_stop();
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
    drop(source); // Whoever waits for the end expects its connection to be closed.
    state.ended = true;
    shared.changed.notify_all();
}

impl State {
    fn fail(&mut self, why: &str) {
        self.failed += 1;
        self.first_failure.get_or_insert_with(|| why.to_owned());
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
        for (place, (column, kind)) in self.columns.iter().enumerate() {
            let value = match kind {
                Kind::Gauge => now.values.get(place).copied(),
                Kind::Counter => before.as_ref().and_then(|before| rate(before, now, place)),
            };
            table.put(*column, value);
        }
    }
}

/// A server that was restarted begins to count anew: no rate then.
fn rate(before: &Reading, now: &Reading, place: usize) -> Option<f64> {
    let events = now.values.get(place)? - before.values.get(place)?;
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

    /// Answers what the test sends, and says that it was asked.
    struct Scripted {
        names: Vec<Variable>,
        asked: Sender<()>,
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
            // The test may be over; then nobody listens.
            let _ = self.asked.send(());
            self.answers.recv().unwrap_or_else(|gone| Err(gone.into()))
        }
    }

    #[test]
    fn a_source_that_fails_is_asked_again_and_reported_once() {
        let (asked, was_asked) = channel();
        let (answer, answers) = channel();
        let source = Scripted {
            names: vec![variable("up", Kind::Gauge)],
            asked,
            answers,
        };
        let mut table = Table::default();
        let interval = Duration::from_millis(1);
        let mut feed = Feed::start(Box::new(source), Instant::now(), interval, &mut table).unwrap();
        answer.send(Err("server has gone away".into())).unwrap();
        answer.send(Ok(vec![1.0, 2.0])).unwrap();
        answer.send(Ok(vec![7.0])).unwrap();
        for _ in 0..4 {
            was_asked.recv().unwrap(); // The fourth one waits for ever.
        }
        feed.sample(&mut table);
        assert_eq!(table.cells(), [Some(7.0)]);
        drop(answer);
        let said = feed.stop().unwrap();
        let expected = "reads failed, first: server has gone away";
        assert!(
            said.starts_with("status of db1: ") && said.ends_with(expected),
            "{said}"
        );
    }
}
