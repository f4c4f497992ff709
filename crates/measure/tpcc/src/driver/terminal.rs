//! A terminal: chooses a transaction, waits for its start, performs it, and repeats.

use std::sync::Arc;

use super::delivery::{DeliveryQueue, QueuedDelivery};
use super::executor::{Completion, Executor};
use super::pacing::TerminalPace;
use super::sample::{Ending, InputTraits, Sample, SampleBuffer};
use super::shared::{Deadline, Shared};
use crate::spec::deck::{Chooser, Kind};
use crate::spec::inputs::{DistrictKey, Input, Inputs};

pub(super) struct Terminal {
    /// Number of the terminal, from 0 over all load hosts.
    pub(super) number: u32,
    pub(super) district: DistrictKey,
    /// Number of warehouses from which each transaction draws one; `None` if the terminal keeps its
    /// home warehouse.
    pub(super) roams: Option<u32>,
    /// Number of remaining transactions; `None` for no limit.
    pub(super) left: Option<u32>,
    pub(super) inputs: Inputs,
    pub(super) chooser: Chooser,
    pub(super) pace: TerminalPace,
    pub(super) executor: Executor,
    /// The queue of deliveries; `None` if the terminal performs them.
    pub(super) queue: Option<Arc<DeliveryQueue>>,
    pub(super) shared: Arc<Shared>,
    pub(super) buffer: Arc<SampleBuffer>,
}

impl Terminal {
    /// Performs transactions until the run is over.
    pub(super) fn work(&mut self) {
        let mut ready_us = 0;
        while self.left.is_none_or(|left| left > 0) {
            // The terminal connects again before its think time. Otherwise the connection would
            // count as down during the think time.
            if !self.executor.ready() {
                return;
            }
            let kind = self.chooser.draw(self.inputs.rng());
            let district = self.next_district();
            let input = self.inputs.draw(kind, district);
            let Some(due_us) = self.await_start(kind, ready_us) else {
                return;
            };
            let sample = self.perform(&input, due_us);
            self.buffer.put(sample);
            self.left = self.left.map(|left| left - 1);
            self.executor.rest();
            ready_us =
                self.pace
                    .ready_us(kind, sample.began_us, sample.ended_us, self.inputs.rng());
        }
    }

    /// Waits for the start of a transaction. Returns the time from which its latency counts, or
    /// `None` if the run ends first.
    fn await_start(&mut self, kind: Kind, ready_us: u64) -> Option<u64> {
        let due_us = self.pace.due_us(kind, ready_us);
        if !self.shared.wait_until(due_us, Deadline::Run) {
            return None;
        }
        match self.pace {
            TerminalPace::Open(_) => Some(due_us),
            // In a closed loop, the latency begins when the transaction is sent. Neither a late
            // timer nor a reconnect is part of it.
            TerminalPace::Eager | TerminalPace::Limited { .. } | TerminalPace::Human { .. } => {
                Some(self.shared.clock.now_us())
            }
        }
    }

    fn next_district(&mut self) -> DistrictKey {
        let d_id = self.district.d_id;
        match self.roams {
            None => self.district,
            Some(warehouses) => DistrictKey {
                w_id: self.inputs.rng().u32(1..=warehouses),
                d_id,
            },
        }
    }

    fn perform(&mut self, input: &Input, due_us: u64) -> Sample {
        let began_us = self.shared.clock.now_us();
        let Completion {
            ending,
            retries,
            delivered,
        } = match (&self.queue, input) {
            (Some(queue), Input::Delivery(delivery)) => {
                let is_queued = queue.put(QueuedDelivery {
                    terminal: self.number,
                    input: *delivery,
                    due_us,
                    queued_us: began_us,
                });
                if is_queued { QUEUED } else { self.refused() }
            }
            _ => self.executor.perform(input),
        };
        Sample {
            kind: input.kind(),
            terminal: self.number,
            deferred: false,
            ending,
            retries,
            skipped: delivered.map_or(0, |(_, skipped)| u8::try_from(skipped).unwrap_or(u8::MAX)),
            traits: InputTraits::of(input),
            due_us,
            began_us,
            ended_us: self.shared.clock.now_us(),
        }
    }
}

impl Terminal {
    /// Counts an error. Returns the outcome of a Delivery for which the queue has no room.
    fn refused(&self) -> Completion {
        let text =
            "the queue of deliveries is full; use more --delivery-workers or a faster server";
        self.shared.count_error(text.to_owned());
        Completion {
            ending: Ending::Failed,
            ..QUEUED
        }
    }
}

const QUEUED: Completion = Completion {
    ending: Ending::Queued,
    retries: 0,
    delivered: None,
};
