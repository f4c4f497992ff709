//! The file of numbers: written when they have changed, at most once a second.

use std::time::{Duration, Instant};

use super::{Labeller, Level, Options};
use crate::counters;
use crate::traffic::{self, Traffic};

/// The shortest time between two writes of the numbers.
const PAUSE: Duration = Duration::from_secs(1);
/// How often bytes are asked for while nothing else happens: they come without waking us.
const TRAFFIC_PAUSE: Duration = Duration::from_secs(5);

/// What the file holds, and what goes into it beside the counters.
pub(super) struct Metrics {
    traffic: Option<Traffic>,
    text: String,
    when: Option<Instant>,
    has_failed: bool,
}

impl Metrics {
    /// Bytes by hint are counted if somebody will read them and the kernel permits it; why not goes to `say`.
    pub(super) fn new(options: &Options, say: &dyn Fn(&str)) -> Self {
        let is_wanted = options.metrics.is_some() && !options.once;
        let traffic = is_wanted.then(|| Traffic::open(options.system.clone()));
        let traffic = traffic.and_then(|it| {
            it.map_err(|error| say(&format!("{error}; they are not in the metrics")))
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
    /// How long may be waited until the file must be looked after again.
    pub(super) fn metrics_pause(&self) -> Option<Duration> {
        self.options.metrics.as_ref()?;
        // The gate counts without waking us.
        let is_changing = self.gate.is_some() || !self.metrics.text.starts_with(&self.counted());
        if is_changing {
            Some(PAUSE)
        } else {
            self.metrics.traffic.as_ref().map(|_| TRAFFIC_PAUSE)
        }
    }

    /// Writes the file if it is time, or else at the next call.
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
        match counters::write_file(path, &text) {
            Ok(()) => {
                self.metrics.text = text;
                self.metrics.has_failed = false;
            }
            Err(error) => {
                if !self.metrics.has_failed {
                    let path = path.display();
                    self.say(
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
            // The kernel has taken its map back: better no bytes than wrong ones.
            (Err(_), _) | (_, Err(_)) => String::new(),
        }
    }

    fn update_gauges(&self) {
        use std::sync::atomic::Ordering::Relaxed;
        let number = |len: usize| u64::try_from(len).unwrap_or(u64::MAX);
        let armed = self.roots.iter().filter(|root| root.armed().is_some());
        self.counters.pinned.store(number(self.pins.len()), Relaxed);
        self.counters
            .directories
            .store(number(armed.count()), Relaxed);
    }
}
