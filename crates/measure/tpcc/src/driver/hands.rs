//! A connection at work: transactions are tried again after conflicts, and the connection is
//! opened again when it is lost.

use std::sync::Arc;

use fastrand::Rng;

use super::connection::Connection;
use super::sample::{Desk, Ending, Way};
use super::shared::{Shared, Until};
use crate::db::SqlError;
use crate::spec::inputs::Input;
use crate::transactions::Outcome;

/// The longest wait before a transaction is tried again, in microseconds, for the first attempt; it
/// doubles with each one up to six times.
const RETRY_US: u64 = 500;
/// The longest wait before a connection is tried again, likewise.
const RECONNECT_US: u64 = 100_000;
const RECONNECT_MOST_US: u64 = 2_000_000;
/// How long a terminal rests after a failure, likewise: a server that refuses everything is not flooded.
const REST_US: u64 = 5_000;
const REST_MOST_US: u64 = 1_000_000;

/// One connection and how it is looked after.
pub(super) struct Hands {
    connection: Option<Box<dyn Connection>>,
    /// Open again, and not asked for anything yet.
    is_untried: bool,
    /// Waits are drawn apart from inputs, which stay reproducible.
    rng: Rng,
    shared: Arc<Shared>,
    desk: Arc<Desk>,
    until: Until,
    failures: u32,
}

/// What became of a transaction.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) ending: Ending,
    pub(super) retries: u16,
    /// Orders of a Delivery and districts without one.
    pub(super) delivered: Option<(Vec<(u32, u32)>, u32)>,
}

impl Hands {
    pub(super) fn new(
        connection: Box<dyn Connection>,
        shared: Arc<Shared>,
        desk: Arc<Desk>,
        until: Until,
        seed: u64,
    ) -> Self {
        shared.on_connected();
        Self {
            connection: Some(connection),
            is_untried: false,
            rng: Rng::with_seed(seed),
            shared,
            desk,
            until,
            failures: 0,
        }
    }

    /// Waits until there is a connection to work with; false when the end comes first.
    pub(super) fn ready(&mut self) -> bool {
        self.ready_unless(|| false)
    }

    /// The same for who may need none any more.
    pub(super) fn ready_unless(&mut self, is_needless: impl Fn() -> bool) -> bool {
        let mut tries = 0;
        while self.connection.is_none() {
            if self.shared.is_over(self.until) || is_needless() {
                return false;
            }
            match self.shared.connector.open_again() {
                Ok(connection) => {
                    self.shared.on_connected();
                    self.desk.put_turn(self.shared.clock.now_us(), Way::Opened);
                    self.connection = Some(connection);
                    self.is_untried = true;
                }
                Err(error) => {
                    self.shared.note(error.to_string());
                    self.pause(longest(RECONNECT_US, tries, RECONNECT_MOST_US));
                    tries += 1;
                }
            }
        }
        true
    }

    /// Performs a transaction with the connection that [`ready`](Self::ready) provided.
    pub(super) fn perform(&mut self, input: &Input) -> Done {
        if !std::mem::take(&mut self.is_untried) {
            return self.try_until_over(input);
        }
        self.desk.put_turn(self.shared.clock.now_us(), Way::Begun);
        let done = self.try_until_over(input);
        self.desk.put_turn(self.shared.clock.now_us(), Way::Ended);
        done
    }

    fn try_until_over(&mut self, input: &Input) -> Done {
        let mut retries = 0;
        loop {
            let Some(connection) = &mut self.connection else {
                return self.failed(Ending::Failed, retries);
            };
            self.desk.on_asked(self.shared.clock.now_us());
            let answer = connection.perform(input, self.shared.date());
            self.desk.on_answered();
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
                    self.shared.note(error.to_string());
                    return self.failed(Ending::Failed, retries);
                }
                SqlError::Lost { .. } => {
                    self.shared.note(error.to_string());
                    self.lose();
                    return self.failed(Ending::Unknown, retries);
                }
            }
        }
    }

    /// After a failure: lets the server breathe.
    pub(super) fn rest(&mut self) {
        if self.failures > 0 {
            self.pause(longest(REST_US, self.failures - 1, REST_MOST_US));
        }
    }

    fn done(&mut self, outcome: Outcome, retries: u16) -> Done {
        self.failures = 0;
        let (ending, delivered) = match outcome {
            Outcome::Committed => (Ending::Committed, None),
            Outcome::RolledBack => (Ending::RolledBack, None),
            Outcome::Delivered { orders, skipped } => (Ending::Committed, Some((orders, skipped))),
        };
        Done {
            ending,
            retries,
            delivered,
        }
    }

    fn failed(&mut self, ending: Ending, retries: u16) -> Done {
        self.failures = self.failures.saturating_add(1);
        Done {
            ending,
            retries,
            delivered: None,
        }
    }

    fn lose(&mut self) {
        self.connection = None;
        self.shared.on_lost();
        self.desk.put_turn(self.shared.clock.now_us(), Way::Lost);
    }

    /// Waits for a random part of `longest_us`, or until the end.
    fn pause(&mut self, longest_us: u64) {
        let wait_us = self.rng.u64(longest_us / 2..=longest_us);
        let at_us = self.shared.clock.now_us().saturating_add(wait_us);
        self.shared.wait_until(at_us, self.until);
    }
}

impl Drop for Hands {
    /// Who ends without a connection wants none: it would look like one that stays down.
    fn drop(&mut self) {
        if self.connection.is_none() {
            self.desk.put_turn(self.shared.clock.now_us(), Way::Left);
        }
    }
}

fn longest(first_us: u64, doublings: u32, most_us: u64) -> u64 {
    first_us.saturating_mul(1 << doublings.min(20)).min(most_us)
}
