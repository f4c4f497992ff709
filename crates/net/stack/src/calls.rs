//! Calls of the owner about listeners and connections.
//!
//! Calls for a connection that has ended do nothing: the end can be on its way to the owner.

use core::net::{IpAddr, SocketAddr};

use saiga_tcp::{Connection, Context, Events, Instant, Settings, StateName};
use saiga_wire::ip::{Addresses, Ports};

use crate::flow::Flow;
use crate::listener::{Listen, ListenError, ListenerId};
use crate::slab::ConnectionId;
use crate::slot::{Slot, State};
use crate::stack::Stack;

/// Ports of connections that the owner opens without choosing one (Linux's
/// `ip_local_port_range`).
const FIRST_PORT: u16 = 32_768;
const PORTS: u16 = 28_232;

/// Why no connection was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// This host does not have the address.
    #[error("{0} is not an address of this host")]
    NotOwn(IpAddr),
    /// The peer's address is not that of another host, or is of another version of IP.
    #[error("{0} is not the address of another host")]
    NotHost(IpAddr),
    /// No route leads to the peer.
    #[error("no route to {0}")]
    NoRoute(IpAddr),
    /// There is a connection with the same addresses and ports.
    #[error("a connection from {local} to {remote} exists already")]
    InUse {
        /// Address and port of this host.
        local: SocketAddr,
        /// Address and port of the peer.
        remote: SocketAddr,
    },
    /// All ports for connections to this peer are in use.
    #[error("no free port for {0}")]
    PortsExhausted(SocketAddr),
    /// There are too many connections.
    #[error("too many connections")]
    TooMany,
}

impl Stack {
    /// Accepts connections at a port.
    ///
    /// # Errors
    /// If another listener has the address and port, or there are too many listeners.
    pub fn listen(&mut self, listen: Listen) -> Result<ListenerId, ListenError> {
        self.connections.listeners.add(listen)
    }

    /// Ends a listener; its connections go on.
    pub fn unlisten(&mut self, id: ListenerId) {
        self.connections.listeners.remove(id);
    }

    /// Opens a connection from `local`, whose port 0 stands for any free port, to `remote`, with a
    /// receive buffer of `buffer` bytes.
    ///
    /// # Errors
    /// If the addresses cannot have a connection, or there is no room for it.
    pub fn connect(
        &mut self,
        local: SocketAddr,
        remote: SocketAddr,
        buffer: u32,
        now: Instant,
    ) -> Result<ConnectionId, ConnectError> {
        if !self.host.routing.is_own(local.ip()) {
            return Err(ConnectError::NotOwn(local.ip()));
        }
        if !self.is_host(remote.ip()) || remote.port() == 0 {
            return Err(ConnectError::NotHost(remote.ip()));
        }
        let flow = flow(local, remote).ok_or(ConnectError::NotHost(remote.ip()))?;
        let settings = self
            .settings_of(&flow)
            .ok_or(ConnectError::NoRoute(remote.ip()))?;
        let flow = if local.port() == 0 {
            self.choose_port(flow)
                .ok_or(ConnectError::PortsExhausted(remote))?
        } else if self.connections.find(&flow).is_some() {
            return Err(ConnectError::InUse { local, remote });
        } else {
            flow
        };
        let start = self.connections.start(&flow, buffer, now);
        let mut context = Context {
            now,
            config: self.connections.settings.get(settings),
            counters: &mut self.counters.tcp,
        };
        let state = State::Engine(Connection::connect(start, &mut context));
        let slot = Slot::new(flow, settings, state);
        let id = self.connections.add(slot).ok_or(ConnectError::TooMany)?;
        self.connections.make_ready(id.index());
        Ok(id)
    }

    /// Forgets a connection in TIME-WAIT, so that its addresses and ports can be used again at
    /// once; returns its number. `None` if there is none in this state. The peer accepts the new
    /// connection, because its sequence numbers and timestamps follow those of the old one (RFC
    /// 6191, RFC 6528).
    pub fn end_time_wait(&mut self, local: SocketAddr, remote: SocketAddr) -> Option<ConnectionId> {
        let index = self.connections.find(&flow(local, remote)?)?;
        let id = self.connections.slots.id(index)?;
        if self.state(id) != Some(StateName::TimeWait) {
            return None;
        }
        self.connections.remove(index);
        Some(id)
    }

    /// The owner has put `bytes` more bytes into the send buffer.
    pub fn write(&mut self, id: ConnectionId, bytes: u32, now: Instant) {
        self.call(id, now, |connection, context| {
            connection.on_write(bytes, context);
        });
    }

    /// As [`Self::write`]; the last of the bytes is urgent (RFC 6093).
    pub fn write_urgent(&mut self, id: ConnectionId, bytes: u32, now: Instant) {
        self.call(id, now, |connection, context| {
            connection.on_write_urgent(bytes, context);
        });
    }

    /// The owner has taken `bytes` from the front of the receive buffer.
    pub fn read(&mut self, id: ConnectionId, bytes: u32, now: Instant) {
        self.call(id, now, |connection, _| connection.on_read(bytes));
    }

    /// The owner will not write any more: a FIN follows the data.
    pub fn shutdown(&mut self, id: ConnectionId, now: Instant) {
        self.call(id, now, Connection::shutdown);
    }

    /// The application has gone. The connection ends in order, or with a reset if data was not
    /// read; [`Events::closed`] tells in both cases.
    pub fn close(&mut self, id: ConnectionId, now: Instant) -> Events {
        let events = self.call(id, now, Connection::close).unwrap_or_default();
        self.connections.note(id, &events);
        events
    }

    /// Ends a connection at once with a reset.
    pub fn abort(&mut self, id: ConnectionId, now: Instant) -> Events {
        let events = self.call(id, now, Connection::abort).unwrap_or_default();
        self.connections.note(id, &events);
        events
    }

    /// The receive buffer has another size in bytes; see [`Connection::resize`].
    pub fn resize(&mut self, id: ConnectionId, buffer: u32, now: Instant) {
        self.call(id, now, |connection, _| connection.resize(buffer));
    }

    /// Changes the settings of the application.
    pub fn set(&mut self, id: ConnectionId, settings: Settings, now: Instant) {
        self.call(id, now, |connection, _| connection.set(settings));
    }

    /// The state of a connection; `None` if it has ended, or the owner has not accepted it.
    #[must_use]
    pub fn state(&mut self, id: ConnectionId) -> Option<StateName> {
        self.engine(id).map(|connection| connection.state())
    }

    /// Bytes that the application has not read up to the end of urgent data.
    #[must_use]
    pub fn urgent_ahead(&mut self, id: ConnectionId) -> Option<u32> {
        self.engine(id)?.urgent_ahead()
    }

    /// Addresses and ports of a connection.
    #[must_use]
    pub fn flow(&mut self, id: ConnectionId) -> Option<Flow> {
        self.connections.slots.get_mut(id).map(|slot| slot.flow)
    }

    fn engine(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        match &mut self.connections.slots.get_mut(id)?.state {
            State::Engine(connection) => Some(connection),
            State::Undecided { .. } | State::Proven(_) => None,
        }
    }

    fn call<R>(
        &mut self,
        id: ConnectionId,
        now: Instant,
        run: impl FnOnce(&mut Connection, &mut Context<'_>) -> R,
    ) -> Option<R> {
        self.connections
            .with_engine(id, &mut self.counters, now, run)
    }

    /// A flow with a free port (RFC 6056 §3.3.3). The ports for a peer follow each other from a
    /// secret first one, so that no port is used again soon.
    fn choose_port(&mut self, flow: Flow) -> Option<Flow> {
        let begin = self.connections.iss.timestamp_offset(flow.key().bytes());
        for _ in 0..PORTS {
            let offset = begin.wrapping_add(u32::from(self.next_port)) % u32::from(PORTS);
            self.next_port = self.next_port.wrapping_add(1);
            let source = FIRST_PORT + u16::try_from(offset).unwrap_or(0);
            let ports = Ports {
                source,
                ..flow.ports
            };
            let flow = Flow { ports, ..flow };
            let is_free = self.connections.find(&flow).is_none()
                && self.connections.listeners.find(flow.local()).is_none();
            if is_free {
                return Some(flow);
            }
        }
        None
    }
}

/// The flow of two addresses of the same version.
fn flow(local: SocketAddr, remote: SocketAddr) -> Option<Flow> {
    let addresses = match (local.ip(), remote.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => Addresses::V4 {
            source,
            destination,
        },
        (IpAddr::V6(source), IpAddr::V6(destination)) => Addresses::V6 {
            source,
            destination,
        },
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return None,
    };
    Some(Flow {
        addresses,
        ports: Ports {
            source: local.port(),
            destination: remote.port(),
        },
    })
}
