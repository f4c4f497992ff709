//! Writes the file of metrics when they have changed, at most once a second.

use saiga_process::replace::replace_in_cache;
use std::time::{Duration, Instant};

use super::{Labeller, Level, Options};
use crate::traffic::{self, Traffic};

/// The shortest time between two writes of the file.
const PAUSE: Duration = Duration::from_secs(1);
/// The interval of reading bytes by hint while nothing else happens: writes do not wake the
/// labeller.
const TRAFFIC_PAUSE: Duration = Duration::from_secs(5);

/// The state of the file of metrics.
pub(super) struct Metrics {
    traffic: Option<Traffic>,
    text: String,
    when: Option<Instant>,
    has_failed: bool,
}

impl Metrics {
    /// Counts bytes by hint if there is a file of metrics and the kernel permits it; otherwise logs
    /// why not.
    pub(super) fn new(options: &Options, log: &dyn Fn(&str)) -> Self {
        let is_wanted = options.metrics.is_some() && !options.once;
        let traffic = is_wanted.then(|| Traffic::open(options.system.clone()));
        let traffic = traffic.and_then(|it| {
            it.map_err(|error| log(&format!("{error}; the metrics lack bytes by hint")))
                .ok()
        });
        Self {
            traffic,
            text: String::new(),
            when: None,
            has_failed: false,
        }
    }

    fn is_soon(&self, now: Instant) -> bool {
        self.when
            .is_some_and(|when| now.saturating_duration_since(when) < PAUSE)
    }
}

impl Labeller<'_> {
    /// Returns the time until the next update of the file; `None` if there is none.
    pub(super) fn metrics_pause(&self) -> Option<Duration> {
        self.options.metrics.as_ref()?;
        // The gate counts without waking this thread.
        let is_changing = self.gate.is_some() || !self.metrics.text.starts_with(&self.counted());
        if is_changing {
            Some(PAUSE)
        } else {
            self.metrics.traffic.as_ref().map(|_| TRAFFIC_PAUSE)
        }
    }

    /// Writes the file if [`PAUSE`] has passed; otherwise leaves it to a later call.
    pub(super) fn write_metrics(&mut self, now: Instant, at_once: bool) {
        self.update_gauges();
        let Some(path) = &self.options.metrics else {
            return;
        };
        if !at_once && self.metrics.is_soon(now) {
            return;
        }
        let text = self.counted() + &self.traffic();
        if !at_once && self.metrics.when.is_some() && text == self.metrics.text {
            return;
        }
        self.metrics.when = Some(now);
        match replace_in_cache(path, text.as_bytes(), 0o666) {
            Ok(()) => {
                self.metrics.text = text;
                self.metrics.has_failed = false;
            }
            Err(error) => {
                if !self.metrics.has_failed {
                    let path = path.display();
                    self.log(
                        Level::Warn,
                        &format!("cannot write {path}: {error}; trying again"),
                    );
                }
                self.metrics.text.clear();
                self.metrics.has_failed = true;
            }
        }
    }

    fn counted(&self) -> String {
        self.counters.now().to_text()
    }

    fn traffic(&self) -> String {
        let Some(traffic) = &self.metrics.traffic else {
            return String::new();
        };
        match (traffic.read(&self.devices()), traffic.lost()) {
            (Ok(rows), Ok(lost)) => traffic::to_text(&rows, lost),
            // The BPF map cannot be read: no bytes are better than wrong ones.
            (Err(_), _) | (_, Err(_)) => String::new(),
        }
    }

    fn update_gauges(&self) {
        use std::sync::atomic::Ordering::Relaxed;
        let number = |len: usize| u64::try_from(len).unwrap_or(u64::MAX);
        let watched = self.roots.iter().filter(|root| root.watched().is_some());
        self.counters
            .pinned
            .store(number(self.known.pinned()), Relaxed);
        self.counters
            .directories
            .store(number(watched.count()), Relaxed);
    }
}
