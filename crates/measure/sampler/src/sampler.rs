//! The sampler thread, and the handle by which its owner controls it.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::benchmarksql::Failure;
use crate::config::{Config, Sink};
use crate::deadline;
use crate::engine::Engine;
use crate::series::Mark;
use crate::snapshot::Snapshot;
use crate::status::thread_cpu_s;
use crate::summary::Summary;

/// With a shorter interval the thread would never sleep.
const INTERVAL_MIN: Duration = Duration::from_millis(1);

/// The sampler could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot read {path}; is /proc mounted?")]
    NoProc { path: PathBuf },
    /// An output file cannot be created. An existing file is never overwritten.
    #[error("cannot create {path}: {source}; name another path, or remove the file if it exists")]
    File { path: PathBuf, source: io::Error },
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

impl StartError {
    pub(crate) fn file(failure: Failure) -> Self {
        let Failure { path, source } = failure;
        Self::File { path, source }
    }
}

/// A command to the sampler thread.
#[derive(Debug)]
enum Command {
    Mark(Mark),
    Group { name: String, pids: Vec<u32> },
}

#[derive(Debug)]
struct State {
    stop: bool,
    /// Commands in the order in which they were given.
    commands: Vec<Command>,
    newest: Arc<Snapshot>,
}

#[derive(Debug)]
struct Shared {
    start: Instant,
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_s(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }
}

/// A running sampler. Dropping it ends the thread; [`Sampler::stop`] also returns the summary.
#[derive(Debug)]
pub struct Sampler {
    shared: Arc<Shared>,
    groups: Vec<String>,
    thread: Option<JoinHandle<Summary>>,
}

impl Sampler {
    /// Makes the first row and starts the thread that makes all further rows.
    pub fn start(config: Config, sink: &Sink) -> Result<Self, StartError> {
        let start = Instant::now();
        let interval = config.interval.max(INTERVAL_MIN);
        let groups = config.groups.iter().map(|group| group.name.clone());
        let groups = groups.collect();
        let mut engine = Engine::new(config, sink, start)?;
        // The time is taken after the files were opened, because the rates of the next row start
        // with this reading.
        let first = engine.tick(start.elapsed().as_secs_f64(), 0.0);
        let shared = Arc::new(Shared {
            start,
            state: Mutex::new(State {
                stop: false,
                commands: Vec::new(),
                newest: Arc::new(first),
            }),
            changed: Condvar::new(),
        });
        let thread = thread::Builder::new().name("saiga-sampler".into());
        let thread = thread.spawn({
            let shared = Arc::clone(&shared);
            move || sample_until_stopped(engine, interval, &shared)
        });
        Ok(Self {
            shared,
            groups,
            thread: Some(thread.map_err(StartError::Thread)?),
        })
    }

    /// Returns the latest row; the first row exists from the start.
    #[must_use]
    pub fn latest(&self) -> Arc<Snapshot> {
        Arc::clone(&self.shared.lock().newest)
    }

    /// Waits for a row with a number above `row`; `None` after the timeout.
    #[must_use]
    pub fn wait_after(&self, row: u64, timeout: Duration) -> Option<Arc<Snapshot>> {
        let state = self.shared.lock();
        let is_old = |state: &mut State| state.newest.row <= row;
        let waited = self
            .shared
            .changed
            .wait_timeout_while(state, timeout, is_old);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (state.newest.row > row).then(|| Arc::clone(&state.newest))
    }

    /// Starts the phase `name` of the run: `warm-up`, `measured`, `gap`.
    pub fn mark(&self, name: &str) {
        let mut state = self.shared.lock();
        // The time is read under the lock, so that every row before the mark has an earlier time.
        let time_s = self.shared.now_s();
        state.commands.push(Command::Mark(Mark {
            time_s,
            name: name.to_owned(),
        }));
    }

    /// Sets the root processes of a group, from the next row on. Returns `false` if the
    /// configuration has no such group. In that one row the CPU time of all groups is unknown.
    #[must_use]
    pub fn set_group(&self, name: &str, pids: &[u32]) -> bool {
        let is_known = self.groups.iter().any(|group| group == name);
        if is_known {
            self.shared.lock().commands.push(Command::Group {
                name: name.to_owned(),
                pids: pids.to_vec(),
            });
        }
        is_known
    }

    /// Ends the thread and returns the summary of the measured interval.
    #[must_use]
    pub fn stop(mut self) -> Summary {
        self.request_stop();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(summary)) => summary,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => unreachable!("only `stop` takes the thread, and `stop` consumes the sampler"),
        }
    }

    fn request_stop(&self) {
        self.shared.lock().stop = true;
        self.shared.changed.notify_all();
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.request_stop();
        if let Some(thread) = self.thread.take() {
            // The panic hook has printed a panic of the thread already.
            let _ = thread.join();
        }
    }
}

fn sample_until_stopped(mut engine: Engine, interval: Duration, shared: &Shared) -> Summary {
    let mut last = Duration::ZERO;
    let mut state = shared.lock();
    loop {
        let due = deadline::next(shared.start.elapsed().max(last), interval);
        while !state.stop {
            let left = due.saturating_sub(shared.start.elapsed());
            if left.is_zero() {
                break;
            }
            let waited = shared.changed.wait_timeout(state, left);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let stop = state.stop;
        let now = shared.start.elapsed();
        let commands = std::mem::take(&mut state.commands);
        drop(state); // Callers must not wait while this thread reads and writes files.
        for command in commands {
            match command {
                Command::Mark(mark) => engine.mark(mark),
                Command::Group { name, pids } => engine.set_group(&name, &pids),
            }
        }
        // A very short last row is skipped, because its CPU percentages would be of a tick or two.
        if !stop || now - last >= interval / 2 {
            let snapshot = Arc::new(engine.tick(now.as_secs_f64(), thread_cpu_s()));
            last = now;
            shared.lock().newest = snapshot;
            shared.changed.notify_all();
        }
        if stop {
            let wall_s = shared.now_s();
            return engine.finish(wall_s, thread_cpu_s());
        }
        state = shared.lock();
    }
}
