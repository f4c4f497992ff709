//! Executes transactions on a connection: retries them after conflicts, and opens the connection
//! again after a loss.
//!
//! Waits are random and grow exponentially, so that terminals neither repeat a conflict nor flood a
//! server that refuses them.

use std::sync::Arc;

use fastrand::Rng;

use super::connection::Connection;
use super::sample::{ConnectionChange, Ending, SampleBuffer};
use super::shared::{Deadline, Shared};
use crate::db::SqlError;
use crate::spec::inputs::Input;
use crate::transactions::Outcome;

/// Longest wait before the first retry of a transaction, in microseconds. It doubles with each
/// further retry, up to six times.
const RETRY_US: u64 = 500;
/// Longest wait before the second attempt to connect. It doubles up to `RECONNECT_MAX_US`.
const RECONNECT_US: u64 = 100_000;
const RECONNECT_MAX_US: u64 = 2_000_000;
/// Longest wait after a failed transaction. It doubles with each further failure up to
/// `REST_MAX_US`.
const REST_US: u64 = 5_000;
const REST_MAX_US: u64 = 1_000_000;

/// A connection with its retry state.
pub(super) struct Executor {
    connection: Option<Box<dyn Connection>>,
    /// True from a reconnect until the first transaction on the new connection begins.
    is_untried: bool,
    /// Source of random waits only. Inputs have their own generator and stay reproducible.
    rng: Rng,
    shared: Arc<Shared>,
    buffer: Arc<SampleBuffer>,
    deadline: Deadline,
    failures: u32,
}

/// The outcome of a transaction after all its attempts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Completion {
    pub(super) ending: Ending,
    pub(super) retries: u16,
    /// D_ID and O_ID of the orders of a Delivery, and the number of districts without an
    /// undelivered order.
    pub(super) delivered: Option<(Vec<(u32, u32)>, u32)>,
}

impl Executor {
    pub(super) fn new(
        connection: Box<dyn Connection>,
        shared: Arc<Shared>,
        buffer: Arc<SampleBuffer>,
        deadline: Deadline,
        seed: u64,
    ) -> Self {
        shared.on_connected();
        Self {
            connection: Some(connection),
            is_untried: false,
            rng: Rng::with_seed(seed),
            shared,
            buffer,
            deadline,
            failures: 0,
        }
    }

    /// Waits until the connection is open. Returns false if the deadline comes first.
    pub(super) fn ready(&mut self) -> bool {
        self.ready_unless(|| false)
    }

    /// Like [`ready`](Self::ready), but also returns false when `is_needless` returns true.
    pub(super) fn ready_unless(&mut self, is_needless: impl Fn() -> bool) -> bool {
        let mut tries = 0;
        while self.connection.is_none() {
            if self.shared.is_over(self.deadline) || is_needless() {
                return false;
            }
            match self.shared.connector.open_again() {
                Ok(connection) => {
                    self.shared.on_connected();
                    self.buffer.put_connection_event(
                        self.shared.clock.now_us(),
                        ConnectionChange::Reopened,
                    );
                    self.connection = Some(connection);
                    self.is_untried = true;
                }
                Err(error) => {
                    self.shared.count_error(error.to_string());
                    self.pause(longest(RECONNECT_US, tries, RECONNECT_MAX_US));
                    tries += 1;
                }
            }
        }
        true
    }

    /// Performs a transaction on the connection that [`ready`](Self::ready) opened.
    pub(super) fn perform(&mut self, input: &Input) -> Completion {
        if !std::mem::take(&mut self.is_untried) {
            return self.try_until_over(input);
        }
        self.buffer
            .put_connection_event(self.shared.clock.now_us(), ConnectionChange::FirstBegun);
        let done = self.try_until_over(input);
        self.buffer
            .put_connection_event(self.shared.clock.now_us(), ConnectionChange::FirstEnded);
        done
    }

    fn try_until_over(&mut self, input: &Input) -> Completion {
        let mut retries = 0;
        loop {
            let Some(connection) = &mut self.connection else {
                return self.failed(Ending::Failed, retries);
            };
            self.buffer.on_asked(self.shared.clock.now_us());
            let answer = connection.perform(input, self.shared.date());
            self.buffer.on_answered();
            let error = match answer {
                Ok(outcome) => return self.done(outcome, retries),
                Err(error) => error,
            };
            match error {
                SqlError::Conflict { .. } if retries < self.shared.max_retries => {
                    self.pause(longest(RETRY_US, u32::from(retries).min(6), u64::MAX));
                    retries += 1;
                }
                SqlError::Conflict { .. }
                | SqlError::Refused { .. }
                | SqlError::Unexpected { .. } => {
                    self.shared.count_error(error.to_string());
                    return self.failed(Ending::Failed, retries);
                }
                SqlError::Lost { .. } => {
                    self.shared.count_error(error.to_string());
                    self.lose();
                    return self.failed(Ending::Unknown, retries);
                }
            }
        }
    }

    /// Waits if the last transaction failed, so that a server that refuses everything is not
    /// flooded.
    pub(super) fn rest(&mut self) {
        if self.failures > 0 {
            self.pause(longest(REST_US, self.failures - 1, REST_MAX_US));
        }
    }

    fn done(&mut self, outcome: Outcome, retries: u16) -> Completion {
        self.failures = 0;
        let (ending, delivered) = match outcome {
            Outcome::Committed => (Ending::Committed, None),
            Outcome::RolledBack => (Ending::RolledBack, None),
            Outcome::Delivered { orders, skipped } => (Ending::Committed, Some((orders, skipped))),
        };
        Completion {
            ending,
            retries,
            delivered,
        }
    }

    fn failed(&mut self, ending: Ending, retries: u16) -> Completion {
        self.failures = self.failures.saturating_add(1);
        Completion {
            ending,
            retries,
            delivered: None,
        }
    }

    fn lose(&mut self) {
        self.connection = None;
        self.shared.on_lost();
        self.buffer
            .put_connection_event(self.shared.clock.now_us(), ConnectionChange::Lost);
    }

    /// Waits for half to all of `longest_us`, but not longer than to the deadline.
    fn pause(&mut self, longest_us: u64) {
        let wait_us = self.rng.u64(longest_us / 2..=longest_us);
        let at_us = self.shared.clock.now_us().saturating_add(wait_us);
        self.shared.wait_until(at_us, self.deadline);
    }
}

impl Drop for Executor {
    /// Records that a lost connection will not be opened again. Otherwise it would count as down.
    fn drop(&mut self) {
        if self.connection.is_none() {
            self.buffer
                .put_connection_event(self.shared.clock.now_us(), ConnectionChange::Abandoned);
        }
    }
}

fn longest(first_us: u64, doublings: u32, most_us: u64) -> u64 {
    first_us.saturating_mul(1 << doublings.min(20)).min(most_us)
}
