//! One remote connection: the stack's end towards the client, and the anchor towards the server.
//!
//! Bytes move as the other side has room: a slow server lets the inbound ring fill, and the
//! client's window closes; a slow client lets the outbound ring fill, and nothing more is read from
//! the anchor. The same happens while there is no memory for a ring.

use std::io::{self, Read, Write};
use std::net::Shutdown;

use mio::net::TcpStream;
use saiga_anchor::urgent;
use saiga_stack::{ConnectionId, Instant, Stack};
use socket2::SockRef;
use std::time::Duration;

use super::Anchor;
use super::buffer::{Buffer, Pools};
use super::latency::Since;
use crate::seats::Seat;

/// Most bytes of one direction before other conversations have their turn.
const MOST_BYTES_OF_A_TURN: u32 = 256 << 10;

/// A remote connection with its anchor.
#[derive(Debug)]
pub(crate) struct Conversation {
    /// `None` once the stack has forgotten the connection.
    pub(crate) connection: Option<ConnectionId>,
    /// `None` until the remote host has accepted the connection of a local program.
    pub(crate) anchor: Option<TcpStream>,
    /// Kept for its end.
    _seat: Option<Seat>,
    /// Whether the server has accepted the anchor. Until then, the client's SYN has no answer. Or
    /// whether the connection of a local program was accepted.
    pub(crate) is_accepted: bool,
    /// From the client to the server.
    pub(crate) inbound: Buffer,
    /// From the server to the client; its front is not acknowledged.
    pub(crate) outbound: Buffer,
    /// Whether the kernel may have bytes of the server, and room for bytes of the client.
    pub(crate) may_read: bool,
    pub(crate) may_write: bool,
    /// Whether an event has told that the server's end has come: the next empty read is it.
    pub(crate) is_end_near: bool,
    /// Whether the server has sent an urgent byte that the client's connection does not have yet.
    pub(crate) has_mark: bool,
    /// Whether the client has sent an urgent byte that the server does not have yet.
    pub(crate) has_urgent: bool,
    /// Whether the client and the server will not send any more.
    pub(crate) has_client_ended: bool,
    has_server_ended: bool,
    /// Whether the conversation is among those of which the worker asks whether the server has
    /// closed.
    is_half: bool,
    /// Whether the server was told that the client has ended.
    is_shut: bool,
    /// Whether the conversation is among those with work.
    pub(crate) is_due: bool,
    /// Since when bytes wait.
    pub(crate) since: Since,
    /// Whether bytes of the client found no memory, and the window was limited because of that.
    is_short: bool,
    /// Whether the rings wait for memory.
    pub(crate) awaits_inbound: bool,
    pub(crate) awaits_outbound: bool,
}

/// What follows for a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// The conversation waits for either side.
    Wait,
    /// There is more to move.
    Again,
    /// The conversation has ended, and its anchor is closed in order. The stack keeps the
    /// connection until its last segments are acknowledged and its TIME-WAIT is over.
    End,
    /// The server's end is gone: the client is reset.
    Reset,
}

impl Conversation {
    pub(crate) fn new(connection: ConnectionId, anchor: Anchor, is_accepted: bool) -> Self {
        let stream = TcpStream::from_std(anchor.stream);
        Self::of(connection, Some(stream), anchor.seat, is_accepted)
    }

    /// The connection of a local program, which waits for the remote host.
    pub(crate) fn opening(connection: ConnectionId) -> Self {
        Self::of(connection, None, None, false)
    }

    /// The connection of a local program was accepted.
    pub(crate) fn accept(&mut self, anchor: std::net::TcpStream) {
        self.anchor = Some(TcpStream::from_std(anchor));
        (self.is_accepted, self.may_read, self.may_write) = (true, true, true);
    }

    fn of(
        connection: ConnectionId,
        anchor: Option<TcpStream>,
        seat: Option<Seat>,
        is_accepted: bool,
    ) -> Self {
        Self {
            connection: Some(connection),
            anchor,
            _seat: seat,
            is_accepted,
            inbound: Buffer::default(),
            outbound: Buffer::default(),
            may_read: is_accepted,
            may_write: is_accepted,
            is_end_near: false,
            has_mark: false,
            has_urgent: false,
            has_client_ended: false,
            has_server_ended: false,
            is_half: false,
            is_shut: false,
            is_due: false,
            since: Since::default(),
            is_short: false,
            awaits_inbound: false,
            awaits_outbound: false,
        }
    }

    /// Moves bytes in both directions, and the ends behind them.
    pub(crate) fn advance(&mut self, stack: &mut Stack, pools: &mut Pools, now: Instant) -> Next {
        let moved = self
            .move_inbound(stack, pools, now)
            .and_then(|inbound| Ok(inbound.max(self.move_outbound(stack, pools, now)?)));
        match moved {
            Err(_) => Next::Reset,
            Ok(_) if self.connection.is_none() && self.inbound.is_empty() => Next::End,
            Ok(_) if self.has_ended() => Next::End,
            Ok(most) if most >= MOST_BYTES_OF_A_TURN => Next::Again,
            Ok(_) => Next::Wait,
        }
    }

    /// Whether both sides have all bytes of each other and the ends behind them.
    const fn has_ended(&self) -> bool {
        self.is_shut && self.has_server_ended && self.outbound.is_empty()
    }

    /// Whether the server has ended its half, and this was not reported before.
    pub(crate) const fn becomes_half(&mut self) -> bool {
        let becomes = !self.is_half && self.has_server_ended && !self.has_client_ended;
        self.is_half |= becomes;
        becomes
    }

    /// Whether no process has the server's end, and the client has acknowledged all of its bytes.
    pub(crate) fn is_orphaned(&self) -> bool {
        let ends = self.anchor.as_ref().map(|anchor| {
            let (own, peer) = (anchor.local_addr()?, anchor.peer_addr()?);
            saiga_anchor::existing::is_orphaned(peer, own)
        });
        // Without an answer, the connection stays.
        self.outbound.is_empty() && matches!(ends, Some(Ok(true)))
    }

    /// Whether the kernel may have bytes of the server, for which there is no memory. A ring with
    /// memory goes on when the client acknowledges.
    pub(crate) fn lacks_outbound(&self) -> bool {
        self.connection.is_some()
            && self.may_read
            && !self.has_server_ended
            && self.outbound.size() == 0
    }

    /// The window keeps to the memory of the ring until it is empty. What was announced before
    /// stays valid; without memory, it is dropped.
    pub(crate) fn limit_window(&mut self, stack: &mut Stack, pools: &Pools, now: Instant) {
        self.is_short = true;
        if let Some(id) = self.connection {
            let buffer = self.inbound.size().max(pools.inbound.least());
            stack.resize(id, buffer, now);
        }
    }

    /// Opens the window again.
    fn open_window(&mut self, stack: &mut Stack, pools: &Pools, now: Instant) {
        if !self.is_short || self.awaits_inbound || !self.inbound.is_empty() {
            return;
        }
        self.is_short = false;
        if let Some(id) = self.connection {
            stack.resize(id, pools.inbound.capacity(), now);
        }
    }

    /// Moves bytes to the server; returns their number.
    fn move_inbound(
        &mut self,
        stack: &mut Stack,
        pools: &mut Pools,
        now: Instant,
    ) -> io::Result<u32> {
        let Some(anchor) = &mut self.anchor else {
            return Ok(0);
        };
        let urgent = self.connection.filter(|_| self.has_urgent);
        let mut ahead = urgent.and_then(|id| stack.urgent_ahead(id));
        let mut moved = 0;
        while self.may_write && !self.inbound.is_empty() && moved < MOST_BYTES_OF_A_TURN {
            match write(anchor, self.inbound.front(), ahead) {
                Ok(count) => {
                    let count = bytes(count);
                    self.inbound.consume(count, &mut pools.inbound);
                    moved += count;
                    ahead = ahead.map(|ahead| ahead - count).filter(|ahead| *ahead > 0);
                }
                Err(error) => self.may_write = !is_full(error)?,
            }
        }
        self.has_urgent = ahead.is_some();
        if let Some(id) = self.connection
            && moved > 0
        {
            stack.read(id, moved, now);
        }
        if self.has_client_ended && self.inbound.is_empty() && !self.is_shut {
            self.is_shut = true;
            anchor.shutdown(Shutdown::Write)?;
        }
        self.open_window(stack, pools, now);
        Ok(moved)
    }

    /// Moves bytes to the client's connection; returns their number.
    fn move_outbound(
        &mut self,
        stack: &mut Stack,
        pools: &mut Pools,
        now: Instant,
    ) -> io::Result<u32> {
        let (Some(id), Some(anchor)) = (self.connection, &mut self.anchor) else {
            return Ok(0);
        };
        let (mut moved, mut told) = (0, 0);
        while self.may_read && !self.has_server_ended && moved < MOST_BYTES_OF_A_TURN {
            let mut room = self.outbound.room(&mut pools.outbound);
            if room.is_empty() {
                break;
            }
            let is_urgent = self.has_mark && urgent::is_next(&*anchor)?;
            if is_urgent {
                room = &mut room[..1];
            }
            let wanted = room.len();
            match anchor.read(room) {
                Ok(0) => self.has_server_ended = true,
                Ok(count) => {
                    self.outbound.extend(bytes(count));
                    moved += bytes(count);
                    if is_urgent {
                        self.has_mark = false;
                        stack.write(id, moved - told - 1, now);
                        stack.write_urgent(id, 1, now);
                        told = moved;
                    }
                    // More bytes bring another event (`man 7 epoll`); an end and an urgent byte
                    // that were told do not.
                    self.may_read = count == wanted || self.is_end_near || self.has_mark;
                }
                Err(error) => {
                    self.may_read = !is_full(error)?;
                    self.has_mark &= self.may_read;
                }
            }
        }
        // Without bytes, there is no memory.
        self.outbound.consume(0, &mut pools.outbound);
        if moved > 0 {
            self.since.is_filled = true;
            stack.write(id, moved - told, now);
        }
        if self.has_server_ended {
            stack.shutdown(id, now);
        }
        Ok(moved)
    }

    /// The client is gone: the server gets a reset when the anchor is closed.
    pub(crate) fn reset_server(&self) {
        // Without it, the server sees the end of the stream, and a reset at its next bytes.
        if let Some(anchor) = &self.anchor {
            let _end = SockRef::from(anchor).set_linger(Some(Duration::ZERO));
        }
    }
}

/// Writes bytes of the client. `ahead`: number of bytes of which the last one is urgent. A call
/// that sends only a part would mark another byte, so the urgent one goes alone.
fn write(mut anchor: &TcpStream, front: &[u8], ahead: Option<u32>) -> io::Result<usize> {
    match ahead {
        None => anchor.write(front),
        Some(1) => SockRef::from(anchor).send_out_of_band(&front[..1]),
        Some(ahead) => anchor.write(&front[..front.len().min(ahead as usize - 1)]),
    }
}

/// Bytes of one call, which rings limit.
fn bytes(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Whether the kernel can take or give nothing now; other errors end the conversation.
fn is_full(error: io::Error) -> io::Result<bool> {
    let kind = error.kind();
    if kind == io::ErrorKind::WouldBlock || kind == io::ErrorKind::Interrupted {
        return Ok(kind == io::ErrorKind::WouldBlock);
    }
    Err(error)
}
