//! Connections as an operator sees them: identity, state, and the numbers of TCP_INFO.
//!
//! Connections are found by their places, so that a caller can look at a few at a time and let
//! frames pass in between. A connection that begins or ends between two calls may be left out; no
//! connection is seen twice. Nothing is changed, and transfers cost nothing more.

use saiga_tcp::{Context, Counters, Info, Instant, StateName};

use crate::flow::Flow;
use crate::slab::ConnectionId;
use crate::slot::State;
use crate::stack::Stack;

/// A connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// Its number.
    pub id: ConnectionId,
    /// Its addresses and ports.
    pub flow: Flow,
    /// Its state; `None` before the owner has decided about the SYN.
    pub state: Option<StateName>,
    /// Its numbers; `None` before the handshake is complete and after both FINs.
    pub info: Option<Info>,
}

impl Stack {
    /// Number of places for connections so far: [`ConnectionId::index`] is below it.
    #[must_use]
    pub fn places(&self) -> u32 {
        self.connections.slots.places()
    }

    /// The connection at a place, if there is one.
    #[must_use]
    pub fn view(&self, place: u32, now: Instant) -> Option<View> {
        let slots = &self.connections.slots;
        let (id, slot) = (slots.id(place)?, slots.at(place)?);
        let (state, info) = match &slot.state {
            State::Undecided { .. } | State::Proven(_) => (None, None),
            State::Engine(connection) => {
                let context = Context {
                    now,
                    config: self.connections.settings.get(slot.settings),
                    // The numbers do not depend on it, and do not change it.
                    counters: &mut Counters::default(),
                };
                (Some(connection.state()), connection.info(&context))
            }
        };
        Some(View {
            id,
            flow: slot.flow,
            state,
            info,
        })
    }
}
