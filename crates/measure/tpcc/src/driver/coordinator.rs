//! Coordinates a run: starts the threads, collects their samples once a second, and decides when
//! the measured interval begins and ends.
//!
//! A single thread does this, so terminals share no statistics. It takes a [`Setup`] and connected
//! [`Terminals`], and returns a [`Measurement`]. During the run, it calls an [`Observer`].

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::clock::{Clock, SECOND_US, WallClock, micros};
use super::cpu::CpuTimes;
use super::delivery::DeliveryResult;
use super::pacing::Schedule;
use super::sample::{Batch, ConnectionChange, ConnectionEvent, Sample};
use super::shared::Shared;
use super::terminals::Terminals;
use super::{Length, RampUp, Setup};
use crate::latency::statistics::{Interval, RunStatistics, Totals};
use crate::latency::steady::{Steady, mser5};
use crate::latency::{Gap, InputCounts, Series, Track};

/// Longest time until a signal, or the end of all terminals, is noticed.
const TICK: Duration = Duration::from_millis(50);
/// Time limit for transactions in progress after the user interrupted the run.
const INTERRUPTED_DRAIN: Duration = Duration::from_secs(3);
/// Seconds over which the displayed throughput is averaged.
const RATE_WINDOW_S: usize = 5;
/// Seconds between two checks of whether the throughput has settled.
const STEADY_CHECK_S: u64 = 5;
/// Number of failed transactions after which a run without any success ends. If there are more
/// terminals than this, the number of terminals applies.
const FAILURES_TO_END: u64 = 20;

/// Observes a run while it lasts.
pub trait Observer {
    /// Returns true to end the run now.
    fn is_interrupted(&self) -> bool;

    /// Receives the transactions that ended since the last call, in the order of their end times.
    fn on_samples(&mut self, samples: &[Sample], delivered: &[DeliveryResult]);

    /// Receives the state of the run once a second.
    fn on_second(&mut self, progress: &Progress);
}

/// The state of a run at the end of a second.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Time since the start.
    pub elapsed: Duration,
    /// Time until the end of the measured interval, if the end is known.
    pub left: Option<Duration>,
    /// True until the measured interval begins.
    pub ramping: bool,
    /// New-Orders per minute, over the last few seconds.
    pub new_orders_per_min: f64,
    /// p50, p95 and p99 of New-Orders in the last complete second, in microseconds.
    pub new_order_us: Option<[u64; 3]>,
    /// Totals since the start.
    pub totals: Totals,
    /// Number of late transactions of an open loop: their intended starts have passed and they have
    /// not begun.
    pub backlog: u64,
    /// Deliveries in the queue.
    pub queued: u64,
    /// Number of open connections, and number of connections that the run needs.
    pub connections: (u32, u32),
    /// Time since the last completed transaction, and the limit at which the run is given up;
    /// `None` while the server answers.
    pub unserved: Option<(Duration, Duration)>,
}

/// The reason for the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    /// The time was over, or every terminal had performed the requested number of transactions.
    Completed,
    Interrupted,
    /// No transaction was completed within the limit, while connections were down or had no answer.
    GaveUp,
    /// Many transactions failed and none succeeded.
    NothingSucceeded,
}

/// The measurements of a run on this host.
#[derive(Debug)]
pub struct Measurement {
    pub end: RunEnd,
    /// The measured interval, in microseconds since the start.
    pub interval_us: (u64, u64),
    /// End of the last transaction, in microseconds since the start.
    pub last_us: u64,
    /// Counts and latencies by phase and type.
    pub tracks: [[Track; 6]; 3],
    /// Counts of input properties in the measured phase.
    pub input_counts: InputCounts,
    pub series: Series,
    pub gaps: Vec<Gap>,
    pub lost: u64,
    /// Distinct error messages with their counts, the most frequent first.
    pub errors: Vec<(String, u64)>,
    /// Number of transactions that never began, although their intended starts were before the end
    /// of the interval.
    pub backlog: u64,
    /// Deliveries that were queued but not performed.
    pub undelivered: u64,
    /// Transactions without an answer at the end of the drain.
    pub unanswered: u64,
    /// Whether the throughput had settled when the measured interval began; `None` for a
    /// ramp-up of fixed length, or if the interval never began.
    pub settled: Option<bool>,
    /// CPU seconds over the whole run: of this process, and of all other processes of the host. The
    /// second value is `None` if `/proc/stat` cannot be read.
    pub cpu_s: (f64, Option<f64>),
}

impl Terminals {
    /// Starts the run at `start` and records its samples. Returns when the last thread has ended or
    /// the drain is over. `date_at_start` is the local date in seconds since 1970. `for_merging`
    /// keeps the histograms that are needed to add this result to others.
    pub fn run(
        self,
        start: Instant,
        date_at_start: i64,
        for_merging: bool,
        observer: &mut dyn Observer,
    ) -> Measurement {
        while Instant::now() < start && !observer.is_interrupted() {
            thread::park_timeout(TICK.min(start.saturating_duration_since(Instant::now())));
        }
        let clock: Arc<dyn Clock> = Arc::new(WallClock::starting_at(start));
        let shared = Arc::new(Shared::new(
            Arc::clone(&clock),
            Arc::clone(&self.connector),
            date_at_start,
            self.setup.max_retries,
        ));
        let window = RunWindow::new(&self.setup);
        let mut coordinator = Coordinator {
            statistics: RunStatistics::new(window.interval(), for_merging),
            window,
            shared,
            batch: Batch::default(),
            backlogs: self.schedules.iter().cloned().map(Backlog::of).collect(),
            lost: 0,
            cpu: CpuTimes::now(),
            terminals: self,
        };
        coordinator.apply_end();
        coordinator.terminals.open_gate(&coordinator.shared);
        let next = coordinator.until_all_end(observer);
        coordinator.finish(next, observer)
    }
}

/// The measured interval of a run, its limits, and the reason for its end.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RunWindow {
    from_us: Option<u64>,
    to_us: u64,
    length_us: Option<u64>,
    /// Latest start of the measured interval while `from_us` is unknown.
    at_most_us: u64,
    drain_us: u64,
    give_up_us: u64,
    settled: Option<bool>,
    end: RunEnd,
}

impl RunWindow {
    pub(super) fn new(setup: &Setup) -> Self {
        let length_us = match setup.length {
            Length::Lasting(length) => Some(micros(length)),
            Length::PerTerminal(_) => None,
        };
        let (from_us, at_most_us) = match setup.ramp_up {
            RampUp::Lasting(ramp_up) => (Some(micros(ramp_up)), micros(ramp_up)),
            RampUp::UntilSteady { at_most } => (None, micros(at_most)),
        };
        let to_us = from_us
            .zip(length_us)
            .map_or(u64::MAX, |(from, length)| from.saturating_add(length));
        Self {
            from_us,
            to_us,
            length_us,
            at_most_us,
            drain_us: micros(setup.drain),
            give_up_us: micros(setup.give_up),
            settled: None,
            end: RunEnd::Completed,
        }
    }

    pub(super) fn interval(&self) -> Interval {
        Interval {
            from_us: self.from_us,
            to_us: self.to_us,
        }
    }

    /// Ends the run at `now_us`, unless it has ended.
    fn stop(&mut self, now_us: u64, end: RunEnd) {
        if now_us < self.to_us {
            (self.to_us, self.end) = (now_us, end);
        }
    }

    /// Ends the run at the user's request. The drain becomes short: a user who waits too long sends
    /// a second signal, which loses all results.
    fn interrupt(&mut self, now_us: u64) {
        self.stop(now_us, RunEnd::Interrupted);
        let since_end_us = now_us.saturating_sub(self.to_us);
        // Further calls do not extend the drain.
        self.drain_us = self
            .drain_us
            .min(since_end_us.saturating_add(micros(INTERRUPTED_DRAIN)));
    }

    /// Checks at regular intervals whether the throughput has settled. If it has, or if the longest
    /// ramp-up is over, the measured interval begins one second later, because some samples of the
    /// current second are recorded already.
    fn check_steadiness(&mut self, second: u64, series: &Series) {
        let now_us = second * SECOND_US;
        if self.from_us.is_some() || second == 0 || !second.is_multiple_of(STEADY_CHECK_S) {
            return;
        }
        let steady = mser5(&series.new_orders_within(0, now_us));
        let settled = matches!(steady, Steady::From(_));
        if settled || now_us >= self.at_most_us {
            let from_us = now_us + SECOND_US;
            self.from_us = Some(from_us);
            let length_us = self.length_us.unwrap_or(u64::MAX);
            self.to_us = self.to_us.min(from_us.saturating_add(length_us));
            self.settled = Some(settled);
        }
    }

    /// Ends the run if no transaction succeeds, or if none was completed for too long.
    fn check_health(&mut self, now_us: u64, health: Health) {
        let Health {
            totals,
            unserved_since_us,
            terminals,
        } = health;
        if totals.done == 0 && totals.failed >= FAILURES_TO_END.max(terminals) {
            self.stop(now_us, RunEnd::NothingSucceeded);
        }
        if unserved_since_us.is_some_and(|since| now_us.saturating_sub(since) >= self.give_up_us) {
            self.stop(now_us, RunEnd::GaveUp);
        }
    }
}

/// Observations that can end a run early.
#[derive(Debug, Clone, Copy)]
struct Health {
    totals: Totals,
    /// Time since which no transaction was completed although connections are down or have no
    /// answer.
    unserved_since_us: Option<u64>,
    terminals: u64,
}

/// Counts the late transactions of one open-loop terminal: their intended starts have passed and
/// they have not begun.
#[derive(Debug)]
pub(super) struct Backlog {
    schedule: Schedule,
    /// Intended starts that have passed.
    due: u64,
    /// Number of transactions that have ended.
    ended: u64,
}

impl Backlog {
    pub(super) fn of(schedule: Schedule) -> Self {
        Self {
            schedule,
            due: 0,
            ended: 0,
        }
    }

    /// Number of late transactions at `now_us`. `working` is true while the terminal runs: then one
    /// transaction has begun and not ended.
    fn backlog(&mut self, now_us: u64, working: bool) -> u64 {
        self.due += self.schedule.pass(now_us);
        self.due.saturating_sub(self.ended + u64::from(working))
    }
}

struct Coordinator {
    terminals: Terminals,
    shared: Arc<Shared>,
    statistics: RunStatistics,
    window: RunWindow,
    batch: Batch,
    /// One entry for each terminal of an open loop, in the order of the terminals.
    backlogs: Vec<Backlog>,
    lost: u64,
    cpu: CpuTimes,
}

impl Coordinator {
    /// Collects samples until all threads have ended or the drain is over. Returns the number of
    /// the next second.
    fn until_all_end(&mut self, observer: &mut dyn Observer) -> u64 {
        let mut second = 1;
        loop {
            let now_us = self.shared.clock.now_us();
            let next_us = (now_us + micros(TICK)).min(second * SECOND_US);
            self.shared.clock.pause_until(next_us);
            let now_us = self.shared.clock.now_us();
            if observer.is_interrupted() {
                self.window.interrupt(now_us);
            }
            if now_us >= second * SECOND_US {
                second = now_us / SECOND_US;
                self.on_second(second, observer);
                second += 1;
            }
            self.apply_end();
            let drained_us = self.window.to_us.saturating_add(self.window.drain_us);
            if self.all_ended(now_us) || now_us >= drained_us {
                return second;
            }
        }
    }

    /// Whether all threads have ended. Closes the queue when the terminals have ended, because they
    /// add no more deliveries.
    fn all_ended(&self, now_us: u64) -> bool {
        let ended = |thread: &thread::JoinHandle<()>| thread.is_finished();
        if !self.terminals.terminal_threads.iter().all(ended) {
            if now_us >= self.window.to_us {
                // A terminal may wait for a start that is after the end of the run. It must wake up
                // to check for the end.
                self.terminals
                    .terminal_threads
                    .iter()
                    .for_each(|one| one.thread().unpark());
            }
            return false;
        }
        if let Some(queue) = &self.terminals.queue {
            queue.close();
        }
        self.terminals.worker_threads.iter().all(ended)
    }

    fn on_second(&mut self, second: u64, observer: &mut dyn Observer) {
        let now_us = second * SECOND_US;
        self.collect(observer);
        self.statistics.close_seconds(now_us);
        let backlog = self.backlog(now_us);
        let index = usize::try_from(second).unwrap_or(usize::MAX);
        self.statistics.series.set_backlog(index - 1, backlog);
        self.window
            .check_steadiness(second, &self.statistics.series);
        let unserved_since_us = self.unserved_since_us();
        let health = Health {
            totals: self.statistics.totals(),
            unserved_since_us,
            terminals: self.terminals.terminal_threads.len() as u64,
        };
        let was = self.window.end;
        self.window.check_health(now_us, health);
        if was != RunEnd::GaveUp && self.window.end == RunEnd::GaveUp {
            self.statistics.gaps.give_up();
        }
        let unserved_us = unserved_since_us.map(|since| now_us.saturating_sub(since));
        let progress = Progress {
            unserved: unserved_us
                .map(|us| (Duration::from_micros(us), self.terminals.setup.give_up)),
            ..self.progress(second, backlog)
        };
        observer.on_second(&progress);
    }

    /// Time since which no terminal was served, by the recorded samples and by the transactions
    /// that wait for an answer.
    fn unserved_since_us(&self) -> Option<u64> {
        let asked = self
            .terminals
            .buffers
            .iter()
            .filter_map(|buffer| buffer.asked_us());
        self.statistics.gaps.unserved_since_us(asked.min())
    }

    fn progress(&self, second: u64, backlog: u64) -> Progress {
        let index = usize::try_from(second).unwrap_or(usize::MAX);
        let left_us = self.window.to_us.saturating_sub(second * SECOND_US);
        let before = index
            .checked_sub(2)
            .and_then(|at| self.statistics.series.seconds.get(at));
        Progress {
            elapsed: Duration::from_secs(second),
            left: (self.window.to_us < u64::MAX).then(|| Duration::from_micros(left_us)),
            ramping: self
                .window
                .from_us
                .is_none_or(|from_us| from_us >= second * SECOND_US),
            new_orders_per_min: self.statistics.new_orders_per_min(index, RATE_WINDOW_S),
            new_order_us: before.and_then(|second| second.new_order_us),
            totals: self.statistics.totals(),
            backlog,
            queued: self.terminals.queue.as_ref().map_or(0, |queue| queue.len()),
            connections: (
                self.shared.connected(),
                u32::try_from(self.terminals.threads().count()).unwrap_or(u32::MAX),
            ),
            unserved: None,
        }
    }

    /// Moves the samples of all threads into the statistics, and passes them to the observer.
    fn collect(&mut self, observer: &mut dyn Observer) {
        self.statistics.set_interval(self.window.interval());
        for (at, buffer) in self.terminals.buffers.iter().enumerate() {
            let ended = buffer.empty_into(&mut self.batch);
            // The buffers of delivery workers come after the buffers of terminals. They have no
            // schedule.
            if let Some(backlog) = self.backlogs.get_mut(at) {
                backlog.ended += ended;
            }
        }
        let Batch {
            samples,
            delivered,
            events,
        } = &mut self.batch;
        samples.sort_by_key(|sample| sample.ended_us);
        delivered.sort_by_key(|row| row.completed_us);
        events.sort_unstable();
        self.lost += events
            .iter()
            .filter(|event| event.change == ConnectionChange::Lost)
            .count() as u64;
        record_in_order(&mut self.statistics, samples, events);
        observer.on_samples(samples, delivered);
        samples.clear();
        delivered.clear();
        events.clear();
    }

    /// Number of late transactions of all terminals at `now_us`, or at the end of the interval if
    /// that is earlier.
    fn backlog(&mut self, now_us: u64) -> u64 {
        let now_us = now_us.min(self.window.to_us);
        let terminals = self
            .backlogs
            .iter_mut()
            .zip(&self.terminals.terminal_threads);
        terminals
            .map(|(one, thread)| one.backlog(now_us, !thread.is_finished()))
            .sum()
    }

    fn apply_end(&self) {
        let (to_us, drain_us) = (self.window.to_us, self.window.drain_us);
        self.shared.end_at(to_us, to_us.saturating_add(drain_us));
    }

    fn finish(mut self, second: u64, observer: &mut dyn Observer) -> Measurement {
        let undelivered = self
            .terminals
            .queue
            .as_ref()
            .map_or(0, |queue| queue.abandon());
        let busy = self
            .terminals
            .threads()
            .filter(|thread| !thread.is_finished());
        let unanswered = busy.count() as u64;
        self.collect(observer);
        self.statistics.close_seconds((second + 2) * SECOND_US);
        let last_us = self.statistics.last_us;
        if self.window.to_us == u64::MAX {
            self.window.to_us = last_us;
        }
        let to_us = self.window.to_us;
        let backlog = self.backlog(to_us);
        let from_us = self
            .window
            .from_us
            .map_or(to_us, |from_us| from_us.min(to_us));
        let mut errors = self.shared.errors();
        if errors.others > 0 {
            let others = "other errors".to_owned();
            errors.by_text.insert(others, errors.others);
        }
        let mut errors: Vec<(String, u64)> = errors.by_text.into_iter().collect();
        errors.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let cpu_s = CpuTimes::now().since(self.cpu);
        let RunStatistics {
            tracks,
            input_counts,
            series,
            gaps,
            ..
        } = self.statistics;
        Measurement {
            end: self.window.end,
            interval_us: (from_us, to_us),
            last_us,
            tracks,
            input_counts,
            series,
            gaps: gaps.finish(to_us.max(last_us)),
            lost: self.lost,
            errors,
            backlog,
            undelivered,
            unanswered,
            settled: self.window.settled,
            cpu_s,
        }
    }
}

/// Records samples and connection events in the order of time, so that the transactions around each
/// gap are the right ones.
fn record_in_order(
    statistics: &mut RunStatistics,
    mut samples: &[Sample],
    events: &[ConnectionEvent],
) {
    for ConnectionEvent { at_us, change } in events {
        let before = samples.partition_point(|sample| sample.ended_us < *at_us);
        let (earlier, later) = samples.split_at(before);
        statistics.record(earlier);
        match change {
            ConnectionChange::Lost => statistics.on_lost(*at_us),
            ConnectionChange::Reopened => statistics.on_reopened(),
            ConnectionChange::FirstBegun => statistics.on_first_begun(*at_us),
            ConnectionChange::FirstEnded => statistics.on_first_ended(),
            ConnectionChange::Abandoned => statistics.on_abandoned(),
        }
        samples = later;
    }
    statistics.record(samples);
}

#[cfg(test)]
mod tests;
