//! The listeners that accept connections to any address, and the sockets that send whole packets.
//!
//! Source: `man 7 ip` (IP_TRANSPARENT, IP_HDRINCL), `man 7 raw`, `man 7 socket` (SO_MARK).

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd as _, BorrowedFd};

use ipnet::IpNet;
use saiga_anchor::MARK;
use socket2::{Domain, Protocol, Socket, Type};

use crate::{Accepted, OutgoingError, system};

/// Connections that wait for the gateway; the kernel limits it to net.core.somaxconn.
const BACKLOG: i32 = 4096;

/// The sockets for IPv4 and IPv6, as far as there are networks of the version: a host may lack one.
#[derive(Debug)]
pub(crate) struct Sockets([Option<Pair>; 2]);

#[derive(Debug)]
struct Pair {
    listener: TcpListener,
    /// The listener's own port.
    port: u16,
    raw: Socket,
}

impl Sockets {
    pub(crate) fn open(networks: &[(IpNet, IpAddr)]) -> Result<Self, OutgoingError> {
        let has = |is_v4| networks.iter().any(|(_, own)| own.is_ipv4() == is_v4);
        let open = |loopback: IpAddr| has(loopback.is_ipv4()).then(|| Pair::open(loopback));
        let v4 = open(IpAddr::V4(Ipv4Addr::LOCALHOST)).transpose()?;
        let v6 = open(IpAddr::V6(Ipv6Addr::LOCALHOST)).transpose()?;
        Ok(Self([v4, v6]))
    }

    /// The listeners.
    pub(crate) fn listeners(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.0.iter().flatten().map(|pair| pair.listener.as_fd())
    }

    /// The listeners by their numbers: 0 for IPv4, 1 for IPv6.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (u32, BorrowedFd<'_>)> {
        let pairs = (0..).zip(&self.0);
        pairs.filter_map(|(number, pair)| Some((number, pair.as_ref()?.listener.as_fd())))
    }

    /// Their own ports; 0 for a version without one.
    pub(crate) fn ports(&self) -> [u16; 2] {
        self.0
            .each_ref()
            .map(|pair| pair.as_ref().map_or(0, |pair| pair.port))
    }

    /// The next connection; `None` if there is none now.
    pub(crate) fn accept(&self) -> io::Result<Option<Accepted>> {
        for pair in self.0.iter().flatten() {
            if let Some(accepted) = pair.accept()? {
                return Ok(Some(accepted));
            }
        }
        Ok(None)
    }

    /// Sends an IP packet to `to`.
    pub(crate) fn send(&self, to: SocketAddr, packet: &[u8]) -> io::Result<()> {
        let [v4, v6] = &self.0;
        // Attempts come for networks alone.
        let Some(pair) = (if to.is_ipv4() { v4 } else { v6 }) else {
            return Ok(());
        };
        let to = SocketAddr::new(to.ip(), 0);
        pair.raw.send_to(packet, &to.into()).map(drop)
    }
}

impl Pair {
    fn open(loopback: IpAddr) -> Result<Self, OutgoingError> {
        let address = SocketAddr::new(loopback, 0);
        let domain = Domain::for_address(address);
        let listener = listener(address).map_err(system("open a transparent listener"))?;
        let raw = Socket::new(
            domain,
            Type::RAW.nonblocking(),
            Some(libc::IPPROTO_RAW.into()),
        )
        .and_then(|raw| raw.set_mark(MARK).map(|()| raw))
        .map_err(system("open a raw socket"))?;
        let own = listener.local_addr();
        let own = own.map_err(system("open a transparent listener"))?;
        Ok(Self {
            port: own.port(),
            listener,
            raw,
        })
    }

    fn accept(&self) -> io::Result<Option<Accepted>> {
        let (stream, local) = loop {
            match self.listener.accept() {
                Ok(accepted) => break accepted,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                // The program of the first one has given up in the meantime.
                Err(error) if is_passing(error.kind()) => {}
                Err(error) => return Err(error),
            }
        };
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let remote = stream.local_addr()?;
        Ok(Some(Accepted {
            stream,
            local,
            remote,
        }))
    }
}

fn listener(address: SocketAddr) -> io::Result<TcpListener> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    match address {
        SocketAddr::V4(_) => socket.set_ip_transparent_v4(true)?,
        SocketAddr::V6(_) => {
            socket.set_ip_transparent_v6(true)?;
            socket.set_only_v6(true)?;
        }
    }
    // For the program that looks for its resets.
    socket.set_mark(MARK)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Whether the next call may return a connection.
fn is_passing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Interrupted | ErrorKind::ConnectionAborted)
}
