//! One terminal: chooses a transaction, waits for its time, performs it, and again.

use std::sync::Arc;

use super::delivery::{Job, Queue};
use super::hands::{Done, Hands};
use super::pacing::Stride;
use super::sample::{Desk, Ending, Sample, Traits};
use super::shared::{Shared, Until};
use crate::spec::deck::{Chooser, Kind};
use crate::spec::inputs::{Input, Inputs, Place};

/// One terminal.
pub(super) struct Terminal {
    /// From 0, over all hosts.
    pub(super) number: u32,
    pub(super) place: Place,
    /// Draws another warehouse for each transaction, of so many.
    pub(super) roams: Option<u32>,
    /// Transactions that it still begins; `None` for as many as there is time for.
    pub(super) left: Option<u32>,
    pub(super) inputs: Inputs,
    pub(super) chooser: Chooser,
    pub(super) stride: Stride,
    pub(super) hands: Hands,
    /// Where deliveries go; `None` when it carries them out itself.
    pub(super) queue: Option<Arc<Queue>>,
    pub(super) shared: Arc<Shared>,
    pub(super) desk: Arc<Desk>,
}

impl Terminal {
    /// Works until the run is over.
    pub(super) fn work(&mut self) {
        let mut ready_us = 0;
        while self.left.is_none_or(|left| left > 0) {
            // Who thinks before it connects again would look like a server that is down.
            if !self.hands.ready() {
                return;
            }
            let kind = self.chooser.draw(self.inputs.rng());
            let place = self.next_place();
            let input = self.inputs.draw(kind, place);
            let Some(due_us) = self.await_start(kind, ready_us) else {
                return;
            };
            let sample = self.perform(&input, due_us);
            self.desk.put(sample);
            self.left = self.left.map(|left| left - 1);
            self.hands.rest();
            ready_us =
                self.stride
                    .ready_us(kind, sample.began_us, sample.ended_us, self.inputs.rng());
        }
    }

    /// From when the latency counts; `None` when the run is over before.
    fn await_start(&mut self, kind: Kind, ready_us: u64) -> Option<u64> {
        let due_us = self.stride.due_us(kind, ready_us);
        if !self.shared.wait_until(due_us, Until::Run) {
            return None;
        }
        match self.stride {
            Stride::Open(_) => Some(due_us),
            // A closed loop begins when it sends: neither late timers nor a connection that is
            // opened again belong to the transaction.
            Stride::Eager | Stride::Limited { .. } | Stride::Human { .. } => {
                Some(self.shared.clock.now_us())
            }
        }
    }

    fn next_place(&mut self) -> Place {
        let d_id = self.place.d_id;
        match self.roams {
            None => self.place,
            Some(warehouses) => Place {
                w_id: self.inputs.rng().u32(1..=warehouses),
                d_id,
            },
        }
    }

    fn perform(&mut self, input: &Input, due_us: u64) -> Sample {
        let began_us = self.shared.clock.now_us();
        let Done {
            ending,
            retries,
            delivered,
        } = match (&self.queue, input) {
            (Some(queue), Input::Delivery(delivery)) => {
                let is_in = queue.put(Job {
                    terminal: self.number,
                    input: *delivery,
                    due_us,
                    queued_us: began_us,
                });
                if is_in { QUEUED } else { self.refused() }
            }
            _ => self.hands.perform(input),
        };
        Sample {
            kind: input.kind(),
            terminal: self.number,
            deferred: false,
            ending,
            retries,
            skipped: delivered.map_or(0, |(_, skipped)| u8::try_from(skipped).unwrap_or(u8::MAX)),
            traits: Traits::of(input),
            due_us,
            began_us,
            ended_us: self.shared.clock.now_us(),
        }
    }
}

impl Terminal {
    /// A Delivery for which the queue has no room.
    fn refused(&self) -> Done {
        let text =
            "the queue of deliveries is full; take more --delivery-workers, or a faster server";
        self.shared.note(text.to_owned());
        Done {
            ending: Ending::Failed,
            ..QUEUED
        }
    }
}

const QUEUED: Done = Done {
    ending: Ending::Queued,
    retries: 0,
    delivered: None,
};
