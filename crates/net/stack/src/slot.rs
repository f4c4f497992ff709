//! One connection of a stack: its state machine and what the stack knows about it.

use alloc::boxed::Box;
use alloc::vec::Vec;

use saiga_tcp::{Connection, Instant};
use saiga_wire::tcp::Header;

use crate::flow::Flow;
use crate::host::Hop;
use crate::listener::ListenerId;
use crate::slab::Slab;

/// A connection with its flow.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) flow: Flow,
    /// The listener, while the connection is in the handshake.
    pub(crate) listener: Option<ListenerId>,
    /// The index of the TCP settings.
    pub(crate) settings: u8,
    /// Whether the connection is among those that may have something to send.
    pub(crate) is_ready: bool,
    /// Whether the connection is counted in TIME-WAIT.
    pub(crate) is_waiting: bool,
    /// The next hop, and the epoch in which it was found.
    pub(crate) hop: Option<(u32, Hop)>,
    pub(crate) state: State,
}

// Besides, a connection takes 16 bytes of the timer wheel, and 10 to 21 of the table of flows.
const _: () = assert!(Slab::<Slot>::PLACE_BYTES <= 512);

impl Slot {
    /// A connection that has nothing to send yet.
    pub(crate) const fn new(flow: Flow, settings: u8, state: State) -> Self {
        Self {
            flow,
            listener: None,
            settings,
            is_ready: false,
            is_waiting: false,
            hop: None,
            state,
        }
    }

    /// The number of the neighbour that leads to the peer, if it is known in this epoch.
    #[inline]
    pub(crate) fn neighbour(&self, epoch: u32) -> Option<u32> {
        let (found, hop) = self.hop?;
        hop.neighbour.filter(|_| found == epoch)
    }
}

/// A connection whose peer has proven its address.
#[derive(Debug)]
pub(crate) struct Proven {
    pub(crate) connection: Connection,
    /// When the stack gives up.
    pub(crate) until: Instant,
    /// What the peer has sent since: the owner has no buffer for it yet.
    pub(crate) held: Vec<Held>,
}

impl Proven {
    pub(crate) fn held_bytes(&self) -> usize {
        self.held.iter().map(|held| held.payload.len()).sum()
    }
}

/// A segment that waits.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) header: Header,
    pub(crate) payload: Box<[u8]>,
    pub(crate) is_congested: bool,
}

/// How far the connection is.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all connections have an engine"
)]
pub(crate) enum State {
    /// A SYN whose acceptance the owner has not decided.
    Undecided {
        syn: Header,
        /// When the stack gives up.
        until: Instant,
    },
    /// A connection that began with a SYN cookie, and whose acceptance the owner has not decided.
    Proven(Box<Proven>),
    /// A connection of the engine.
    Engine(Connection),
}
