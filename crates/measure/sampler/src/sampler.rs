//! The thread that makes a row each second, and what its owner can ask and tell it.

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

/// Less would be a thread that never sleeps.
const INTERVAL_MIN: Duration = Duration::from_millis(1);

/// Why sampling cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no such file, so no `/proc`.
    #[error("cannot read {path}; is /proc mounted?")]
    NoProc {
        /// The file.
        path: PathBuf,
    },
    /// A file of the sink cannot be made. One that exists is not written over.
    #[error("cannot make {path}: {source}; name another place or remove it first")]
    File {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel gives us no more threads.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

impl StartError {
    pub(crate) fn file(failure: Failure) -> Self {
        let Failure { path, source } = failure;
        Self::File { path, source }
    }
}

/// News for the thread, in the order in which they came.
#[derive(Debug)]
enum News {
    Mark(Mark),
    Group { name: String, pids: Vec<u32> },
}

#[derive(Debug)]
struct State {
    stop: bool,
    news: Vec<News>,
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

/// A running sampler. Dropped without [`Sampler::stop`], it ends as well.
#[derive(Debug)]
pub struct Sampler {
    shared: Arc<Shared>,
    groups: Vec<String>,
    thread: Option<JoinHandle<Summary>>,
}

impl Sampler {
    /// Makes the first row and starts the thread that makes the others.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(config: Config, sink: &Sink) -> Result<Self, StartError> {
        let start = Instant::now();
        let interval = config.interval.max(INTERVAL_MIN);
        let groups = config.groups.iter().map(|group| group.name.clone());
        let groups = groups.collect();
        let mut engine = Engine::new(config, sink, start)?;
        // Opening took its time; rates of the next row are from when this one is read.
        let first = engine.tick(start.elapsed().as_secs_f64(), 0.0);
        let shared = Arc::new(Shared {
            start,
            state: Mutex::new(State {
                stop: false,
                news: Vec::new(),
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

    /// The newest row.
    #[must_use]
    pub fn latest(&self) -> Arc<Snapshot> {
        Arc::clone(&self.shared.lock().newest)
    }

    /// Waits for a row after number `row`; `None` when none came in time.
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

    /// From now on the run is in the phase `name`: `warm-up`, `measured`, `gap`.
    pub fn mark(&self, name: &str) {
        let mut state = self.shared.lock();
        // Under the lock, so that no row that ended later is before it.
        let time_s = self.shared.now_s();
        state.news.push(News::Mark(Mark {
            time_s,
            name: name.to_owned(),
        }));
    }

    /// Names the processes of a group, from the next row on; `false` when the configuration
    /// has no such group. The CPU time of all groups is unknown in that one row.
    #[must_use]
    pub fn set_group(&self, name: &str, pids: &[u32]) -> bool {
        let is_known = self.groups.iter().any(|group| group == name);
        if is_known {
            self.shared.lock().news.push(News::Group {
                name: name.to_owned(),
                pids: pids.to_vec(),
            });
        }
        is_known
    }

    /// Ends the thread and adds the measured interval up.
    #[must_use]
    pub fn stop(mut self) -> Summary {
        self.tell_to_stop();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(summary)) => summary,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => unreachable!("only stop takes the thread, and it takes the sampler"),
        }
    }

    fn tell_to_stop(&self) {
        self.shared.lock().stop = true;
        self.shared.changed.notify_all();
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.tell_to_stop();
        if let Some(thread) = self.thread.take() {
            // A panic was printed where it happened; there is nobody left to tell.
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
        let news = std::mem::take(&mut state.news);
        drop(state); // Nobody waits for us while we read and write files.
        for news in news {
            match news {
                News::Mark(mark) => engine.mark(mark),
                News::Group { name, pids } => engine.set_group(&name, &pids),
            }
        }
        // A row of a few milliseconds at the end would have shares of one tick in none.
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
