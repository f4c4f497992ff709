//! The queue of deferred deliveries (TPC-C §2.7.2). Terminals add deliveries and continue; workers
//! with their own connections perform them.
//!
//! The queue is first in, first out, with one exception: two deliveries of one warehouse never run
//! at the same time, because the second would only wait for row locks of the first.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::executor::{Completion, Executor};
use super::sample::{InputTraits, Sample, SampleBuffer};
use super::shared::Shared;
use crate::spec::deck::Kind;
use crate::spec::inputs::{Delivery, Input};

/// A delivery in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QueuedDelivery {
    pub(super) terminal: u32,
    pub(super) input: Delivery,
    /// Start of the latency measurement, in microseconds since the start of the run.
    pub(super) due_us: u64,
    pub(super) queued_us: u64,
}

/// A row of the delivery result file (§2.7.2.2). Times are microseconds since the start of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryResult {
    pub queued_us: u64,
    pub w_id: u32,
    pub carrier_id: u32,
    /// D_ID and O_ID of each delivered order.
    pub orders: Vec<(u32, u32)>,
    /// Time of the commit.
    pub completed_us: u64,
}

#[derive(Debug, Default)]
pub(super) struct DeliveryQueue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

/// Maximum number of queued deliveries. No server performs that many within the 80 s of §2.7.2.3. A
/// full queue takes a few MiB.
const MAX_WAITING: u64 = 100_000;

#[derive(Debug, Default)]
struct QueueState {
    /// Queued deliveries of each warehouse, with their sequence numbers.
    by_warehouse: BTreeMap<u32, VecDeque<(u64, QueuedDelivery)>>,
    /// Warehouses with queued deliveries and none in progress, ordered by the sequence number of
    /// their first delivery.
    free: BTreeSet<(u64, u32)>,
    /// Warehouses with a delivery in progress.
    busy: BTreeSet<u32>,
    waiting: u64,
    /// Sequence number of the next delivery to be added.
    next: u64,
    closed: bool,
}

impl QueueState {
    fn put(&mut self, queued: QueuedDelivery) {
        let (number, w_id) = (self.next, queued.input.w_id);
        self.next += 1;
        self.waiting += 1;
        let of_warehouse = self.by_warehouse.entry(w_id).or_default();
        of_warehouse.push_back((number, queued));
        if of_warehouse.len() == 1 && !self.busy.contains(&w_id) {
            self.free.insert((number, w_id));
        }
    }

    fn pick(&mut self) -> Option<QueuedDelivery> {
        let (_, w_id) = self.free.pop_first()?;
        let (_, queued) = self.by_warehouse.get_mut(&w_id)?.pop_front()?;
        self.waiting -= 1;
        self.busy.insert(w_id);
        Some(queued)
    }

    fn finish(&mut self, w_id: u32) {
        self.busy.remove(&w_id);
        if let Some((number, _)) = self.by_warehouse.get(&w_id).and_then(VecDeque::front) {
            self.free.insert((*number, w_id));
        }
    }
}

impl DeliveryQueue {
    /// Adds a delivery. Returns false when the queue is full.
    #[must_use]
    pub(super) fn put(&self, queued: QueuedDelivery) -> bool {
        let mut state = self.state();
        if state.waiting >= MAX_WAITING {
            return false;
        }
        state.put(queued);
        drop(state);
        self.changed.notify_one();
        true
    }

    /// Puts a delivery that [`take`](Self::take) returned back to the end of the queue, because it
    /// could not be performed.
    fn put_back(&self, queued: QueuedDelivery) {
        let mut state = self.state();
        state.finish(queued.input.w_id);
        state.put(queued);
        drop(state);
        self.changed.notify_one();
    }

    /// Waits for the next delivery; `None` when the queue is closed and empty.
    pub(super) fn take(&self) -> Option<QueuedDelivery> {
        let mut state = self.state();
        loop {
            if let Some(queued) = state.pick() {
                return Some(queued);
            }
            if state.closed && state.waiting == 0 {
                return None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Records the end of a delivery that [`take`](Self::take) returned.
    pub(super) fn finish(&self, queued: &QueuedDelivery) {
        self.state().finish(queued.input.w_id);
        self.changed.notify_all();
    }

    /// Closes the queue. Afterwards no delivery is added.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.changed.notify_all();
    }

    /// Whether the queue is closed and empty.
    fn is_over(&self) -> bool {
        let state = self.state();
        state.closed && state.waiting == 0
    }

    /// Closes the queue and drops its deliveries. Returns the number of dropped deliveries.
    pub(super) fn abandon(&self) -> u64 {
        let mut state = self.state();
        state.closed = true;
        let left = std::mem::take(&mut state.waiting);
        state.by_warehouse.clear();
        state.free.clear();
        drop(state);
        self.changed.notify_all();
        left
    }

    pub(super) fn len(&self) -> u64 {
        self.state().waiting
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        // Each change leaves the state consistent, so a poisoned lock can be used.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Performs deliveries until the queue is closed and empty, or the drain is over.
pub(super) fn perform_deliveries(
    queue: &DeliveryQueue,
    executor: &mut Executor,
    shared: &Shared,
    buffer: &Arc<SampleBuffer>,
) {
    while let Some(queued) = queue.take() {
        if !executor.ready() {
            // A delivery in the queue counts as not performed.
            queue.put_back(queued);
            return;
        }
        perform_one(&queued, executor, shared, buffer);
        queue.finish(&queued);
        executor.rest();
        // Connects again before it waits for the next delivery. Otherwise the connection would
        // count as down while the worker waits.
        executor.ready_unless(|| queue.is_over());
    }
}

fn perform_one(
    queued: &QueuedDelivery,
    executor: &mut Executor,
    shared: &Shared,
    buffer: &Arc<SampleBuffer>,
) {
    let began_us = shared.clock.now_us();
    let Completion {
        ending,
        retries,
        delivered,
    } = executor.perform(&Input::Delivery(queued.input));
    let ended_us = shared.clock.now_us();
    let (orders, skipped) = delivered.unwrap_or_default();
    let sample = Sample {
        kind: Kind::Delivery,
        terminal: queued.terminal,
        deferred: true,
        ending,
        retries,
        skipped: u8::try_from(skipped).unwrap_or(u8::MAX),
        traits: InputTraits::default(),
        due_us: queued.due_us,
        began_us,
        ended_us,
    };
    if sample.is_done() {
        buffer.put_delivered(DeliveryResult {
            queued_us: queued.queued_us,
            w_id: queued.input.w_id,
            carrier_id: queued.input.carrier_id,
            orders,
            completed_us: ended_us,
        });
    }
    buffer.put(sample);
}
