//! Opening an anchor: a connection to the server that has the client's address as its source.
//!
//! Spec: `man 7 ip` (IP_TRANSPARENT, IP_BIND_ADDRESS_NO_PORT, IP_LOCAL_PORT_RANGE), `man 7 tcp`,
//! kernel net/ipv4/inet_hashtables.c. Over loopback the handshake is over when connect(2) returns.
//!
//! A bound port is lost for connections of local programs to all hosts. So the socket gets its port
//! in connect(2), from a range of one port, which other sockets may share. That works for free
//! ports of the ephemeral range. Others are bound; under TCP_REPAIR, where a local listener has the
//! same port at every address.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::ops::RangeInclusive;

use libc::c_int;
use netlink_sys::protocols::{NETLINK_ROUTE, NETLINK_SOCK_DIAG};
use socket2::{Domain, Protocol, Socket, Type};

use crate::existing::{self, CLOSE_WAIT, ESTABLISHED, SYN_RECEIVED, SYN_SENT, canonical, is_live};
use crate::netlink::Netlink;
use crate::{end, sys, table};

/// IP_LOCAL_PORT_RANGE of linux/in.h, since Linux 6.3. The lower half is the first port, the upper
/// half the last.
const LOCAL_PORT_RANGE: c_int = 51;
/// TCP_REPAIR_OFF_NO_WP of linux/tcp.h: without a window probe to the peer.
const REPAIR_OFF_NO_PROBE: c_int = -1;

/// Ports below this one need a right of their own (`man 7 ip`).
const PRIVILEGED: u16 = 1024;

/// Opens anchors. Each worker has its own.
pub struct Anchors {
    /// The ports that the kernel chooses for connections of this host.
    ephemeral: RangeInclusive<u16>,
    diag: Netlink,
    /// Tells the addresses of this host from those of others.
    routes: Netlink,
    /// Of the path to the last client.
    path_mtu: Option<u32>,
}

/// What follows from the attempt to open an anchor.
#[derive(Debug)]
pub enum Opening {
    /// The server's kernel has accepted the connection. The stream does not block.
    Established(TcpStream),
    /// The server's host or a packet filter refuses the connection: the client gets a reset.
    Refused,
    /// No answer yet: the backlog is full, or a packet filter drops. The client gets no answer. The
    /// kernel tries again after a second and later: [`proceed`] when the stream is writable, or
    /// drop the stream and open another one when the client repeats its SYN.
    Waiting(TcpStream),
    /// The kernel has a connection with this client itself: leave the host to it
    /// ([`Routes::leave`](crate::Routes::leave)).
    Conflict,
}

/// Why an anchor was not opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The client has a link-local address of IPv6, whose interface an anchor cannot have.
    #[error("{client} is link-local: leave it to the kernel")]
    LinkLocal {
        /// The client.
        client: SocketAddr,
    },
    /// No packet from another host has these addresses.
    #[error("{client} cannot be a remote client of {server}")]
    Unfit {
        /// The client.
        client: SocketAddr,
        /// The destination of its SYN.
        server: SocketAddr,
    },
    /// The process or the system has no more descriptors (EMFILE, ENFILE).
    #[error("no descriptor is left for {client}: {source}; raise LimitNOFILE= or fs.file-max")]
    Descriptors {
        /// The client.
        client: SocketAddr,
        /// EMFILE for the process, ENFILE for the system.
        source: io::Error,
    },
    /// The process lacks a right.
    #[error("{call} for {client} is not permitted: it needs {right}")]
    NoRight {
        /// What was not permitted.
        call: &'static str,
        /// The client. Its port may be one below 1024.
        client: SocketAddr,
        /// The name of the capability (`man 7 capabilities`).
        right: &'static str,
    },
    /// A security module or a BPF program of a cgroup forbids it.
    #[error(
        "{call} for {client} is denied by a security module (see the audit log) or a BPF program \
         of the cgroup"
    )]
    Denied {
        /// What was denied.
        call: &'static str,
        /// The client.
        client: SocketAddr,
    },
    /// An anchor of this client and server exists already.
    #[error("an anchor from {client} to {server} exists")]
    Exists {
        /// The client.
        client: SocketAddr,
        /// The server.
        server: SocketAddr,
    },
    /// Another error.
    #[error("{call} for an anchor from {client} to {server}: {source}")]
    System {
        /// The call.
        call: &'static str,
        /// The client.
        client: SocketAddr,
        /// The server.
        server: SocketAddr,
        /// Its error.
        source: io::Error,
    },
}

/// Both ends of an anchor, in plain form.
#[derive(Clone, Copy)]
struct Ends {
    client: SocketAddr,
    server: SocketAddr,
}

impl Anchors {
    /// Prepares for the network namespace of the calling thread.
    ///
    /// # Errors
    /// The errors of netlink, and of reading `/proc/sys/net/ipv4/ip_local_port_range`.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            ephemeral: ephemeral_ports()?,
            diag: Netlink::open(NETLINK_SOCK_DIAG)?,
            routes: Netlink::open(NETLINK_ROUTE)?,
            path_mtu: None,
        })
    }

    /// The MTU of the path to the client of the last [`Self::connect`], if the kernel's routes know
    /// one: errors of routers can come to the kernel alone.
    #[must_use]
    pub const fn path_mtu(&self) -> Option<u32> {
        self.path_mtu
    }

    /// Opens an anchor from `client` to `server`, the destination of its SYN. IPv4-mapped addresses
    /// are IPv4. The caller asks for no host that is [left](crate::Routes::left) to the kernel.
    ///
    /// A client with an address of this host is refused, as a kernel does: the server could take it
    /// for a local one.
    ///
    /// # Errors
    /// A [`ConnectError`]; nothing is left open.
    pub fn connect(
        &mut self,
        client: SocketAddr,
        server: SocketAddr,
    ) -> Result<Opening, ConnectError> {
        let ends = Ends::fit(client, server)?;
        let known = table::look_up(&mut self.routes, ends.client.ip());
        let known = known.map_err(|error| ends.fault("RTM_GETROUTE", error))?;
        self.path_mtu = known.mtu;
        if known.is_own {
            let Ends { client, server } = ends;
            return Err(ConnectError::Unfit { client, server });
        }
        let socket = match self.open(ends) {
            // One of a gateway that was killed, or whose server does not end: its client has ended.
            Err(ConnectError::Exists { .. }) if self.end_orphan(ends)? => self.open(ends)?,
            opened => opened?,
        };
        let opening = proceed(socket.into()).map_err(|error| ends.fault("TCP_INFO", error))?;
        if matches!(opening, Opening::Waiting(_)) && self.has_kernels(ends)? {
            return Ok(Opening::Conflict);
        }
        Ok(opening)
    }

    fn open(&mut self, ends: Ends) -> Result<Socket, ConnectError> {
        match self.by_range(ends)? {
            Some(socket) => Ok(socket),
            None => by_bind(ends),
        }
    }

    /// Ends the anchor with these ends if no process has it. Returns whether there was one.
    fn end_orphan(&mut self, ends: Ends) -> Result<bool, ConnectError> {
        let ended = existing::end_orphan(&mut self.diag, ends.client, ends.server);
        ended.map_err(|error| ends.fault("sock_diag", error))
    }

    /// Whether the kernel has a connection of its own with the client.
    fn has_kernels(&mut self, ends: Ends) -> Result<bool, ConnectError> {
        let state = existing::state(&mut self.diag, ends.server, ends.client);
        let state = state.map_err(|error| ends.fault("sock_diag", error))?;
        Ok(state.is_some_and(is_live))
    }

    /// An anchor that gets its port in connect(2); `None` if the port cannot be had this way.
    fn by_range(&mut self, ends: Ends) -> Result<Option<Socket>, ConnectError> {
        let port = ends.client.port();
        if !self.ephemeral.contains(&port) {
            return Ok(None);
        }
        let socket = ends.socket()?;
        let only = (i32::from(port.cast_signed()) << 16) | i32::from(port);
        if sys::set(&socket, libc::IPPROTO_IP, LOCAL_PORT_RANGE, only).is_err() {
            return Ok(None); // before Linux 6.3
        }
        sys::set(&socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)
            .map_err(|error| ends.fault("IP_BIND_ADDRESS_NO_PORT", error))?;
        let any_port = SocketAddr::new(ends.client.ip(), 0);
        socket
            .bind(&any_port.into())
            .map_err(|error| ends.fault("bind(2)", error))?;
        match begin(&socket, ends.server) {
            // A listener, TIME-WAIT or a program that has bound the port.
            Err(error) if error.raw_os_error() == Some(libc::EADDRNOTAVAIL) => return Ok(None),
            begun => begun.map_err(|error| ends.fault("connect(2)", error))?,
        }
        let stream = TcpStream::from(socket);
        if stream.local_addr().is_ok_and(|local| local == ends.client) {
            return Ok(Some(stream.into()));
        }
        // The kernel ignores a range outside its own, which has changed.
        end::reset(stream);
        self.ephemeral =
            ephemeral_ports().map_err(|error| ends.fault("ip_local_port_range", error))?;
        Ok(None)
    }
}

impl Ends {
    fn fit(client: SocketAddr, server: SocketAddr) -> Result<Self, ConnectError> {
        let (client, server) = (canonical(client), canonical(server));
        if is_link_local(client.ip()) {
            return Err(ConnectError::LinkLocal { client });
        }
        let is_unfit = |end: SocketAddr| {
            let ip = end.ip();
            let is_broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
            end.port() == 0
                || ip.is_unspecified()
                || ip.is_loopback()
                || ip.is_multicast()
                || is_broadcast
        };
        if is_unfit(client)
            || is_unfit(server)
            || client.is_ipv4() != server.is_ipv4()
            || client.ip() == server.ip()
        {
            return Err(ConnectError::Unfit { client, server });
        }
        Ok(Self { client, server })
    }

    /// A socket that may have the client's address.
    fn socket(self) -> Result<Socket, ConnectError> {
        let domain = Domain::for_address(self.server);
        let socket = Socket::new(domain, Type::STREAM.nonblocking(), Some(Protocol::TCP))
            .map_err(|error| self.fault("socket(2)", error))?;
        let transparent = match self.client {
            SocketAddr::V4(_) => socket.set_ip_transparent_v4(true),
            SocketAddr::V6(_) => socket.set_ip_transparent_v6(true),
        };
        transparent.map_err(|error| self.fault("IP_TRANSPARENT", error))?;
        self.let_reuse(&socket)?;
        socket
            .set_tcp_nodelay(true)
            .map_err(|error| self.fault("TCP_NODELAY", error))?;
        Ok(socket)
    }

    /// Lets other sockets bind the port while the anchor is open or in TIME-WAIT: the next anchor
    /// of the client, and a server of this host that starts again. The end of TCP_REPAIR forbids
    /// it.
    fn let_reuse(self, socket: &Socket) -> Result<(), ConnectError> {
        let set = socket.set_reuse_address(true);
        set.map_err(|error| self.fault("SO_REUSEADDR", error))
    }

    /// The error of `call`.
    fn fault(self, call: &'static str, source: io::Error) -> ConnectError {
        let Self { client, server } = self;
        let lacks = |right| ConnectError::NoRight {
            call,
            client,
            right,
        };
        match source.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE) => ConnectError::Descriptors { client, source },
            // These calls need no right that the gateway may lack.
            Some(libc::EPERM) if matches!(call, "socket(2)" | "bind(2)" | "connect(2)") => {
                ConnectError::Denied { call, client }
            }
            Some(libc::EPERM) => lacks("CAP_NET_ADMIN"),
            Some(libc::EACCES) if call == "bind(2)" && client.port() < PRIVILEGED => {
                lacks("CAP_NET_BIND_SERVICE")
            }
            Some(libc::EACCES) => ConnectError::Denied { call, client },
            Some(libc::EADDRINUSE | libc::EADDRNOTAVAIL) => ConnectError::Exists { client, server },
            _ => ConnectError::System {
                call,
                client,
                server,
                source,
            },
        }
    }
}

/// An anchor whose port is bound.
fn by_bind(ends: Ends) -> Result<Socket, ConnectError> {
    let socket = ends.socket()?;
    match socket.bind(&ends.client.into()) {
        Err(error) if error.raw_os_error() == Some(libc::EADDRINUSE) => {
            bind_beside_listener(&socket, ends)?;
        }
        bound => bound.map_err(|error| ends.fault("bind(2)", error))?,
    }
    begin(&socket, ends.server).map_err(|error| ends.fault("connect(2)", error))?;
    Ok(socket)
}

/// Binds a port that a listener has at all addresses: TCP_REPAIR skips that check.
fn bind_beside_listener(socket: &Socket, ends: Ends) -> Result<(), ConnectError> {
    let repair = |mode| {
        sys::set(socket, libc::IPPROTO_TCP, libc::TCP_REPAIR, mode)
            .map_err(|error| ends.fault("TCP_REPAIR", error))
    };
    repair(1)?;
    socket
        .bind(&ends.client.into())
        .map_err(|error| ends.fault("bind(2)", error))?;
    repair(REPAIR_OFF_NO_PROBE)?;
    ends.let_reuse(socket)
}

/// Sends the SYN. A refusal is found by [`proceed`].
fn begin(socket: &Socket, server: SocketAddr) -> io::Result<()> {
    match socket.connect(&server.into()) {
        Err(error)
            if matches!(
                error.raw_os_error(),
                Some(libc::EINPROGRESS | libc::ECONNREFUSED)
            ) =>
        {
            Ok(())
        }
        done => done,
    }
}

/// What follows from the present state of an anchor that was [waiting](Opening::Waiting).
///
/// # Errors
/// The errors of `getsockopt(2)`.
pub fn proceed(anchor: TcpStream) -> io::Result<Opening> {
    Ok(match sys::tcp_state(&anchor)? {
        // In CLOSE-WAIT the server has ended the connection at once.
        ESTABLISHED | CLOSE_WAIT => Opening::Established(anchor),
        SYN_SENT | SYN_RECEIVED => Opening::Waiting(anchor),
        _ => Opening::Refused,
    })
}

pub(crate) fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

/// The ports that the kernel chooses for connections of this host, of both families.
fn ephemeral_ports() -> io::Result<RangeInclusive<u16>> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")?;
    let mut numbers = text.split_whitespace().map(str::parse::<u16>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(first)), Some(Ok(last))) => Ok(first..=last),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}
