//! The queue of deliveries (TPC-C §2.7.2): terminals put them in and go on; workers with
//! connections of their own carry them out, one at a time for each warehouse.
//!
//! The order of the queue is kept but for warehouses at which a delivery is under way: two
//! at one warehouse would only wait for each other's rows.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::hands::{Done, Hands};
use super::sample::{Desk, Sample, Traits};
use super::shared::Shared;
use crate::spec::deck::Kind;
use crate::spec::inputs::{Delivery, Input};

/// A delivery that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) terminal: u32,
    pub(super) input: Delivery,
    /// From when its latency counts.
    pub(super) due_us: u64,
    /// When it was queued.
    pub(super) queued_us: u64,
}

/// A row of the result file (§2.7.2.2): a delivery that was carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// When it was queued, since the start of the run.
    pub queued_us: u64,
    /// W_ID.
    pub w_id: u32,
    /// O_CARRIER_ID.
    pub carrier_id: u32,
    /// D_ID and O_ID.
    pub orders: Vec<(u32, u32)>,
    /// When it was committed.
    pub completed_us: u64,
}

/// Deliveries that wait.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    news: Condvar,
}

/// More do not wait: at the 80 s of §2.7.2.3 this is more than any server here carries out, and it is
/// no more than some MiB.
const MOST_WAITING: u64 = 100_000;

#[derive(Debug, Default)]
struct State {
    /// Of each warehouse, with their places in the order of all.
    jobs: BTreeMap<u32, VecDeque<(u64, Job)>>,
    /// Warehouses with jobs at which none is under way, by the place of their first.
    free: BTreeSet<(u64, u32)>,
    /// Warehouses at which one is under way.
    busy: BTreeSet<u32>,
    waiting: u64,
    /// The place of the next one.
    next: u64,
    closed: bool,
}

impl State {
    fn put(&mut self, job: Job) {
        let (place, w_id) = (self.next, job.input.w_id);
        self.next += 1;
        self.waiting += 1;
        let jobs = self.jobs.entry(w_id).or_default();
        jobs.push_back((place, job));
        if jobs.len() == 1 && !self.busy.contains(&w_id) {
            self.free.insert((place, w_id));
        }
    }

    fn pick(&mut self) -> Option<Job> {
        let (_, w_id) = self.free.pop_first()?;
        let (_, job) = self.jobs.get_mut(&w_id)?.pop_front()?;
        self.waiting -= 1;
        self.busy.insert(w_id);
        Some(job)
    }

    fn finish(&mut self, w_id: u32) {
        self.busy.remove(&w_id);
        if let Some((place, _)) = self.jobs.get(&w_id).and_then(VecDeque::front) {
            self.free.insert((*place, w_id));
        }
    }
}

impl Queue {
    /// False when too many wait already.
    #[must_use]
    pub(super) fn put(&self, job: Job) -> bool {
        let mut state = self.state();
        if state.waiting >= MOST_WAITING {
            return false;
        }
        state.put(job);
        drop(state);
        self.news.notify_one();
        true
    }

    /// One that was taken could not be carried out, and waits again.
    fn put_back(&self, job: Job) {
        let mut state = self.state();
        state.finish(job.input.w_id);
        state.put(job);
        drop(state);
        self.news.notify_one();
    }

    /// Waits for the next one; `None` when the queue is empty for good.
    pub(super) fn take(&self) -> Option<Job> {
        let mut state = self.state();
        loop {
            if let Some(job) = state.pick() {
                return Some(job);
            }
            if state.closed && state.waiting == 0 {
                return None;
            }
            state = self
                .news
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// One that was taken is over.
    pub(super) fn finish(&self, job: &Job) {
        self.state().finish(job.input.w_id);
        self.news.notify_all();
    }

    /// Nothing more comes.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.news.notify_all();
    }

    /// Whether it is empty for good.
    fn is_over(&self) -> bool {
        let state = self.state();
        state.closed && state.waiting == 0
    }

    /// Forgets what waits, for good: how many that were.
    pub(super) fn abandon(&self) -> u64 {
        let mut state = self.state();
        state.closed = true;
        let left = std::mem::take(&mut state.waiting);
        state.jobs.clear();
        state.free.clear();
        drop(state);
        self.news.notify_all();
        left
    }

    pub(super) fn len(&self) -> u64 {
        self.state().waiting
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Whole between any two of its changes.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Carries out deliveries until the queue is empty for good.
pub(super) fn carry_out(queue: &Queue, hands: &mut Hands, shared: &Shared, desk: &Arc<Desk>) {
    while let Some(job) = queue.take() {
        if !hands.ready() {
            // Put back, so that it is counted among those that were not carried out.
            queue.put_back(job);
            return;
        }
        one(&job, hands, shared, desk);
        queue.finish(&job);
        hands.rest();
        // Who waits for the next one without a connection would look like a server that is down.
        hands.ready_unless(|| queue.is_over());
    }
}

fn one(job: &Job, hands: &mut Hands, shared: &Shared, desk: &Arc<Desk>) {
    let began_us = shared.clock.now_us();
    let Done {
        ending,
        retries,
        delivered,
    } = hands.perform(&Input::Delivery(job.input));
    let ended_us = shared.clock.now_us();
    let (orders, skipped) = delivered.unwrap_or_default();
    let sample = Sample {
        kind: Kind::Delivery,
        terminal: job.terminal,
        deferred: true,
        ending,
        retries,
        skipped: u8::try_from(skipped).unwrap_or(u8::MAX),
        traits: Traits::default(),
        due_us: job.due_us,
        began_us,
        ended_us,
    };
    if sample.is_done() {
        desk.put_delivered(Delivered {
            queued_us: job.queued_us,
            w_id: job.input.w_id,
            carrier_id: job.input.carrier_id,
            orders,
            completed_us: ended_us,
        });
    }
    desk.put(sample);
}
