//! The run as a whole: starts everybody, empties the desks once a second, decides when the measured
//! interval begins and when it is over.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::clock::{Clock, SECOND_US, WallClock, micros};
use super::cpu::Look;
use super::crew::Crew;
use super::delivery::Delivered;
use super::pacing::Schedule;
use super::sample::{Sample, Sheet, Turn, Way};
use super::shared::Shared;
use super::{Length, RampUp, Setup};
use crate::latency::ledger::{Interval, Ledger, Sums};
use crate::latency::steady::{Steady, mser5};
use crate::latency::{Gap, Series, Tally, Track};

/// How long it takes at most until a signal, or the end of all terminals, is seen.
const TICK: Duration = Duration::from_millis(50);
/// How long transactions may still take when the user wants the run to end.
const HASTE: Duration = Duration::from_secs(3);
/// Seconds over which the throughput of the moment is averaged.
const WINDOW: usize = 5;
/// Between two looks at whether the system has settled.
const STEADY_CHECK_S: u64 = 5;
/// Failures without a single success before the run is called off.
const HOPELESS: u64 = 20;

/// Who looks on while a run is under way.
pub trait Watch {
    /// Whether the run is to end now.
    fn is_interrupted(&self) -> bool;

    /// Takes what ended since the last call, in the order of its ends.
    fn take(&mut self, samples: &[Sample], delivered: &[Delivered]);

    /// Shows how far it is, once a second.
    fn tell(&mut self, now: &Now);
}

/// A run at some second.
#[derive(Debug, Clone, PartialEq)]
pub struct Now {
    /// Since the start.
    pub elapsed: Duration,
    /// Until the measured interval is over, if that is known.
    pub left: Option<Duration>,
    /// Still in the ramp-up.
    pub ramping: bool,
    /// New-Orders per minute over the last few seconds.
    pub new_orders_per_min: f64,
    /// p50, p95 and p99 of New-Orders in the last complete second, in microseconds.
    pub new_order_us: Option<[u64; 3]>,
    /// Since the start.
    pub sums: Sums,
    /// Intended starts that are late.
    pub backlog: u64,
    /// Deliveries that wait.
    pub queued: u64,
    /// Open connections, and how many there should be.
    pub connections: (u32, u32),
    /// For how long nothing was done although it was wanted, and for how long that may last.
    pub unserved: Option<(Duration, Duration)>,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It had its time, or all terminals had done their number.
    Done,
    /// The user wanted it.
    Interrupted,
    /// Nothing was done for too long while connections were down, or had no answer.
    GaveUp,
    /// Not one transaction succeeded.
    Hopeless,
}

/// What a run has measured.
#[derive(Debug)]
pub struct Measured {
    /// Why it ended.
    pub end: End,
    /// What was measured, in microseconds since the start.
    pub interval_us: (u64, u64),
    /// End of the last transaction.
    pub last_us: u64,
    /// By phase and type.
    pub tracks: [[Track; 6]; 3],
    /// The inputs of the measured phase.
    pub tally: Tally,
    /// Second by second.
    pub series: Series,
    /// Times without service.
    pub gaps: Vec<Gap>,
    /// Connections that were lost.
    pub lost: u64,
    /// Different errors, each with its count, the most frequent first.
    pub troubles: Vec<(String, u64)>,
    /// Intended starts before the end that never came to be.
    pub backlog: u64,
    /// Deliveries that were queued and not carried out.
    pub undelivered: u64,
    /// Transactions without an answer when the time to drain was over.
    pub unanswered: u64,
    /// Whether the system had settled; `None` when the interval began before anybody knew.
    pub settled: Option<bool>,
    /// CPU seconds of this process over the whole run, and of all others.
    pub cpu_s: (f64, Option<f64>),
}

impl Crew {
    /// Lets all begin at `start`, keeps the books, and returns when the last one has ended or its
    /// time is over. `date_at_start` is in seconds since 1970 of a clock on the wall.
    /// `for_merging` keeps what is needed to add the result to others.
    pub fn run(
        self,
        start: Instant,
        date_at_start: i64,
        for_merging: bool,
        watch: &mut dyn Watch,
    ) -> Measured {
        while Instant::now() < start && !watch.is_interrupted() {
            thread::park_timeout(TICK.min(start.saturating_duration_since(Instant::now())));
        }
        let clock: Arc<dyn Clock> = Arc::new(WallClock::starting_at(start));
        let shared = Arc::new(Shared::new(
            Arc::clone(&clock),
            Arc::clone(&self.connector),
            date_at_start,
            self.setup.max_retries,
        ));
        let course = Course::new(&self.setup);
        let mut conductor = Conductor {
            ledger: Ledger::new(course.interval(), for_merging),
            course,
            shared,
            sheet: Sheet::default(),
            punctuality: self
                .schedules
                .iter()
                .cloned()
                .map(Punctuality::of)
                .collect(),
            lost: 0,
            cpu: Look::now(),
            crew: self,
        };
        conductor.apply_end();
        conductor.crew.open_gate(&conductor.shared);
        let next = conductor.until_all_end(watch);
        conductor.finish(next, watch)
    }
}

/// When the measured interval begins and ends.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Course {
    from_us: Option<u64>,
    to_us: u64,
    length_us: Option<u64>,
    /// While it is not known when the ramp-up ends: the latest.
    at_most_us: u64,
    drain_us: u64,
    give_up_us: u64,
    settled: Option<bool>,
    end: End,
}

impl Course {
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
            end: End::Done,
        }
    }

    pub(super) fn interval(&self) -> Interval {
        Interval {
            from_us: self.from_us,
            to_us: self.to_us,
        }
    }

    /// The run ends at `now_us`, if it has not ended.
    fn stop(&mut self, now_us: u64, end: End) {
        if now_us < self.to_us {
            (self.to_us, self.end) = (now_us, end);
        }
    }

    /// The user wants an end: who is impatient asks twice, and that loses everything.
    fn interrupt(&mut self, now_us: u64) {
        self.stop(now_us, End::Interrupted);
        let since_end_us = now_us.saturating_sub(self.to_us);
        // The first call makes it shortest.
        self.drain_us = self
            .drain_us
            .min(since_end_us.saturating_add(micros(HASTE)));
    }

    /// Looks whether the system has settled, and begins to measure with the next second when it has:
    /// some transactions of the second that has just begun are in the books already.
    fn look_for_steadiness(&mut self, second: u64, series: &Series) {
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

    /// Whether it makes no sense to go on.
    fn look_for_hope(&mut self, now_us: u64, hope: Hope) {
        let Hope {
            sums,
            unserved_since_us,
            terminals,
        } = hope;
        if sums.done == 0 && sums.failed >= HOPELESS.max(terminals) {
            self.stop(now_us, End::Hopeless);
        }
        if unserved_since_us.is_some_and(|since| now_us.saturating_sub(since) >= self.give_up_us) {
            self.stop(now_us, End::GaveUp);
        }
    }
}

/// What speaks for and against going on.
#[derive(Debug, Clone, Copy)]
struct Hope {
    sums: Sums,
    /// Connections are down, or have no answer, and nothing was done since.
    unserved_since_us: Option<u64>,
    terminals: u64,
}

/// How far one terminal is behind its schedule.
#[derive(Debug)]
pub(super) struct Punctuality {
    schedule: Schedule,
    /// Intended starts that have passed.
    due: u64,
    /// Transactions that have ended.
    ended: u64,
}

impl Punctuality {
    pub(super) fn of(schedule: Schedule) -> Self {
        Self {
            schedule,
            due: 0,
            ended: 0,
        }
    }

    /// Intended starts that have passed and not begun; the one that is under way has begun.
    fn backlog(&mut self, now_us: u64, working: bool) -> u64 {
        self.due += self.schedule.pass(now_us);
        self.due.saturating_sub(self.ended + u64::from(working))
    }
}

struct Conductor {
    crew: Crew,
    shared: Arc<Shared>,
    ledger: Ledger,
    course: Course,
    sheet: Sheet,
    /// Of an open loop, in the order of the terminals.
    punctuality: Vec<Punctuality>,
    lost: u64,
    cpu: Look,
}

impl Conductor {
    /// The second that comes next.
    fn until_all_end(&mut self, watch: &mut dyn Watch) -> u64 {
        let mut second = 1;
        loop {
            let now_us = self.shared.clock.now_us();
            let next_us = (now_us + micros(TICK)).min(second * SECOND_US);
            self.shared.clock.pause_until(next_us);
            let now_us = self.shared.clock.now_us();
            if watch.is_interrupted() {
                self.course.interrupt(now_us);
            }
            if now_us >= second * SECOND_US {
                second = now_us / SECOND_US;
                self.on_second(second, watch);
                second += 1;
            }
            self.apply_end();
            let drained_us = self.course.to_us.saturating_add(self.course.drain_us);
            if self.all_ended(now_us) || now_us >= drained_us {
                return second;
            }
        }
    }

    /// Terminals first; then nothing more comes into the queue.
    fn all_ended(&self, now_us: u64) -> bool {
        let ended = |thread: &thread::JoinHandle<()>| thread.is_finished();
        if !self.crew.terminals.iter().all(ended) {
            if now_us >= self.course.to_us {
                // Who waits for a start that lies behind the end need not.
                self.crew
                    .terminals
                    .iter()
                    .for_each(|one| one.thread().unpark());
            }
            return false;
        }
        if let Some(queue) = &self.crew.queue {
            queue.close();
        }
        self.crew.workers.iter().all(ended)
    }

    fn on_second(&mut self, second: u64, watch: &mut dyn Watch) {
        let now_us = second * SECOND_US;
        self.collect(watch);
        self.ledger.close_seconds(now_us);
        let backlog = self.backlog(now_us);
        let index = usize::try_from(second).unwrap_or(usize::MAX);
        self.ledger.series.set_backlog(index - 1, backlog);
        self.course.look_for_steadiness(second, &self.ledger.series);
        let unserved_since_us = self.unserved_since_us();
        let hope = Hope {
            sums: self.ledger.sums(),
            unserved_since_us,
            terminals: self.crew.terminals.len() as u64,
        };
        let was = self.course.end;
        self.course.look_for_hope(now_us, hope);
        if was != End::GaveUp && self.course.end == End::GaveUp {
            self.ledger.gaps.give_up();
        }
        let unserved_us = unserved_since_us.map(|since| now_us.saturating_sub(since));
        let now = Now {
            unserved: unserved_us.map(|us| (Duration::from_micros(us), self.crew.setup.give_up)),
            ..self.now(second, backlog)
        };
        watch.tell(&now);
    }

    /// By the books and by what is under way.
    fn unserved_since_us(&self) -> Option<u64> {
        let asked = self.crew.desks.iter().filter_map(|desk| desk.asked_us());
        self.ledger.gaps.unserved_since_us(asked.min())
    }

    fn now(&self, second: u64, backlog: u64) -> Now {
        let index = usize::try_from(second).unwrap_or(usize::MAX);
        let left_us = self.course.to_us.saturating_sub(second * SECOND_US);
        let before = index
            .checked_sub(2)
            .and_then(|at| self.ledger.series.seconds.get(at));
        Now {
            elapsed: Duration::from_secs(second),
            left: (self.course.to_us < u64::MAX).then(|| Duration::from_micros(left_us)),
            ramping: self
                .course
                .from_us
                .is_none_or(|from_us| from_us >= second * SECOND_US),
            new_orders_per_min: self.ledger.new_orders_per_min(index, WINDOW),
            new_order_us: before.and_then(|second| second.new_order_us),
            sums: self.ledger.sums(),
            backlog,
            queued: self.crew.queue.as_ref().map_or(0, |queue| queue.len()),
            connections: (
                self.shared.connected(),
                u32::try_from(self.crew.threads().count()).unwrap_or(u32::MAX),
            ),
            unserved: None,
        }
    }

    /// Empties the desks into the books.
    fn collect(&mut self, watch: &mut dyn Watch) {
        self.ledger.set_interval(self.course.interval());
        for (at, desk) in self.crew.desks.iter().enumerate() {
            let ended = desk.empty_into(&mut self.sheet);
            // Desks of delivery workers follow those of terminals, and have no schedule.
            if let Some(punctuality) = self.punctuality.get_mut(at) {
                punctuality.ended += ended;
            }
        }
        let Sheet {
            samples,
            delivered,
            turns,
        } = &mut self.sheet;
        samples.sort_by_key(|sample| sample.ended_us);
        delivered.sort_by_key(|row| row.completed_us);
        turns.sort_unstable();
        self.lost += turns.iter().filter(|turn| turn.way == Way::Lost).count() as u64;
        enter(&mut self.ledger, samples, turns);
        watch.take(samples, delivered);
        samples.clear();
        delivered.clear();
        turns.clear();
    }

    /// Intended starts before `now_us`, or before the end, that have not begun.
    fn backlog(&mut self, now_us: u64) -> u64 {
        let now_us = now_us.min(self.course.to_us);
        let terminals = self.punctuality.iter_mut().zip(&self.crew.terminals);
        terminals
            .map(|(one, thread)| one.backlog(now_us, !thread.is_finished()))
            .sum()
    }

    fn apply_end(&self) {
        let (to_us, drain_us) = (self.course.to_us, self.course.drain_us);
        self.shared.end_at(to_us, to_us.saturating_add(drain_us));
    }

    fn finish(mut self, second: u64, watch: &mut dyn Watch) -> Measured {
        let undelivered = self.crew.queue.as_ref().map_or(0, |queue| queue.abandon());
        let busy = self.crew.threads().filter(|thread| !thread.is_finished());
        let unanswered = busy.count() as u64;
        self.collect(watch);
        self.ledger.close_seconds((second + 2) * SECOND_US);
        let last_us = self.ledger.last_us;
        if self.course.to_us == u64::MAX {
            self.course.to_us = last_us;
        }
        let to_us = self.course.to_us;
        let backlog = self.backlog(to_us);
        let from_us = self
            .course
            .from_us
            .map_or(to_us, |from_us| from_us.min(to_us));
        let mut troubles = self.shared.troubles();
        if troubles.others > 0 {
            let others = "other errors".to_owned();
            troubles.by_text.insert(others, troubles.others);
        }
        let mut troubles: Vec<(String, u64)> = troubles.by_text.into_iter().collect();
        troubles.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let cpu_s = Look::now().since(self.cpu);
        let Ledger {
            tracks,
            tally,
            series,
            gaps,
            ..
        } = self.ledger;
        Measured {
            end: self.course.end,
            interval_us: (from_us, to_us),
            last_us,
            tracks,
            tally,
            series,
            gaps: gaps.finish(to_us.max(last_us)),
            lost: self.lost,
            troubles,
            backlog,
            undelivered,
            unanswered,
            settled: self.course.settled,
            cpu_s,
        }
    }
}

/// Transactions and connections in the order of time: a gap lies between them.
fn enter(ledger: &mut Ledger, mut samples: &[Sample], turns: &[Turn]) {
    for Turn { at_us, way } in turns {
        let before = samples.partition_point(|sample| sample.ended_us < *at_us);
        let (earlier, later) = samples.split_at(before);
        ledger.take(earlier);
        match way {
            Way::Lost => ledger.on_lost(*at_us),
            Way::Opened => ledger.on_opened(),
            Way::Begun => ledger.on_begun(*at_us),
            Way::Ended => ledger.on_ended(),
            Way::Left => ledger.on_left(),
        }
        samples = later;
    }
    ledger.take(samples);
}

#[cfg(test)]
mod tests;
