//! What a stack needs from its owner: buffers, and a receiver of news.

use saiga_tcp::Events;

use crate::flow::Flow;
use crate::listener::ListenerId;
use crate::slab::ConnectionId;

/// The owner of the buffers of all connections. Its methods run inside calls of the stack, so they
/// note what has happened; the owner calls the stack afterwards.
pub trait Owner {
    /// A host asks for a connection. The owner decides, now or later, by
    /// [`crate::Stack::accept`], [`crate::Stack::refuse`] or [`crate::Stack::ignore`].
    fn on_incoming(&mut self, id: ConnectionId, incoming: &Incoming);

    /// Something has happened to a connection. After [`Events::closed`] the number is not used any
    /// more.
    fn on_events(&mut self, id: ConnectionId, events: &Events);

    /// Copies received bytes to the receive buffer of a connection, `at` bytes behind its first
    /// unread byte. Bytes can come before those in front of them; [`Events::readable`] tells how
    /// many are complete.
    fn place(&mut self, id: ConnectionId, at: u32, bytes: &[u8]);

    /// The bytes behind the first unread one of a connection's receive buffer for which there is
    /// memory; at least those that were placed. `end` is the end of a segment that has come,
    /// counted in the same way. Bytes beyond are dropped as if the network had lost them, although
    /// they are in the window.
    fn room(&mut self, id: ConnectionId, end: u32) -> u32 {
        let _ = (id, end);
        u32::MAX
    }

    /// Fills `into` with bytes of the send buffer of a connection, from `at` bytes behind its front
    /// on. The front is the first byte that [`Events::acked`] has not counted.
    fn fetch(&mut self, id: ConnectionId, at: u32, into: &mut [u8]);
}

/// A request for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incoming {
    /// The listener.
    pub listener: ListenerId,
    /// Addresses and ports of the connection.
    pub flow: Flow,
}
