//! Requests of one connection that wait for their responses, in order.

use std::collections::VecDeque;

use super::{Kind, Trouble};
use crate::{
    Timestamp,
    traffic::{Answer, Sink},
};

/// Deeper pipelines are not followed.
const MOST: usize = 65_536;

#[derive(Debug, Clone, Copy)]
struct Request {
    kind: Kind,
    start: Timestamp,
    /// First and last byte of the response so far.
    response: Option<(Timestamp, Timestamp)>,
}

#[derive(Debug, Default)]
pub(super) struct Outstanding(VecDeque<Request>);

impl Outstanding {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn front_has_response(&self) -> bool {
        self.0
            .front()
            .is_some_and(|request| request.response.is_some())
    }

    /// # Errors
    /// Fails if there are too many requests to follow.
    pub(super) fn begin(
        &mut self,
        start: Timestamp,
        kind: Kind,
        sink: &mut Sink<'_>,
    ) -> Result<(), Trouble> {
        if self.0.len() == MOST {
            sink.budget.requests_left_out += 1;
            return Err(Trouble::Lost);
        }
        if !sink.budget.take_outstanding() {
            return Err(Trouble::Lost);
        }
        self.0.push_back(Request {
            kind,
            start,
            response: None,
        });
        sink.arrival(start);
        Ok(())
    }

    /// A part of the first request's response came.
    pub(super) fn responds(&mut self, at: Timestamp) {
        if let Some(front) = self.0.front_mut() {
            let (first, _) = front.response.unwrap_or((at, at));
            front.response = Some((first, at));
        }
    }

    /// The first request's response ends.
    pub(super) fn end(&mut self, at: Timestamp, sink: &mut Sink<'_>) {
        self.responds(at);
        self.end_turn(sink);
    }

    /// The first request's response ended with the last byte that came.
    pub(super) fn end_turn(&mut self, sink: &mut Sink<'_>) {
        let Some(Request {
            kind,
            start,
            response,
        }) = self.0.pop_front()
        else {
            sink.server.parsing.unrequested += 1;
            return;
        };
        sink.budget.give_outstanding();
        let (first, last) = response.unwrap_or((start, start));
        sink.answer(Answer {
            kind,
            start,
            first,
            last,
        });
    }

    /// Gives up all requests but the first.
    pub(super) fn keep_first(&mut self, at: Timestamp, sink: &mut Sink<'_>) {
        for _ in 1..self.0.len() {
            self.0.pop_back();
            sink.budget.give_outstanding();
            sink.unanswered(at);
        }
        self.0.shrink_to(MOST_KEPT);
    }

    pub(super) fn abandon(&mut self, at: Timestamp, sink: &mut Sink<'_>) {
        self.keep_first(at, sink);
        if self.0.pop_front().is_some() {
            sink.budget.give_outstanding();
            sink.unanswered(at);
        }
        self.0 = VecDeque::new();
    }
}

/// Capacity that a connection keeps when its pipeline is given up.
const MOST_KEPT: usize = 16;
