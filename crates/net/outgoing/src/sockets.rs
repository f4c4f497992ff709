//! The listeners that accept connections to any address, and the sockets that send whole packets.
//!
//! Source: `man 7 ip` (IP_TRANSPARENT, IP_HDRINCL), `man 7 raw`, `man 7 socket` (SO_MARK).

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd as _, BorrowedFd};

use saiga_anchor::MARK;
use socket2::{Domain, Protocol, Socket, Type};

use crate::{Accepted, OutgoingError, system};

/// Connections that wait for the gateway; the kernel limits it to net.core.somaxconn.
const BACKLOG: i32 = 4096;

/// The sockets, by the version of IP.
#[derive(Debug)]
pub(crate) struct Sockets {
    v4: Pair,
    v6: Pair,
}

#[derive(Debug)]
struct Pair {
    listener: TcpListener,
    /// Where the listener is, for the program that gives connections to it.
    address: SocketAddr,
    raw: Socket,
}

impl Sockets {
    pub(crate) fn open() -> Result<Self, OutgoingError> {
        Ok(Self {
            v4: Pair::open(IpAddr::V4(Ipv4Addr::LOCALHOST))?,
            v6: Pair::open(IpAddr::V6(Ipv6Addr::LOCALHOST))?,
        })
    }

    /// The listeners of both versions.
    pub(crate) fn listeners(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [&self.v4, &self.v6]
            .into_iter()
            .map(|pair| pair.listener.as_fd())
    }

    /// Their own addresses.
    pub(crate) fn addresses(&self) -> [SocketAddr; 2] {
        [self.v4.address, self.v6.address]
    }

    /// The next connection; `None` if there is none now.
    pub(crate) fn accept(&self) -> io::Result<Option<Accepted>> {
        for pair in [&self.v4, &self.v6] {
            let (stream, local) = match pair.listener.accept() {
                Ok(accepted) => accepted,
                // The program has given up in the meantime.
                Err(error) if is_passing(error.kind()) => continue,
                Err(error) => return Err(error),
            };
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            let remote = stream.local_addr()?;
            return Ok(Some(Accepted {
                stream,
                local,
                remote,
            }));
        }
        Ok(None)
    }

    /// Sends an IP packet to `to`.
    pub(crate) fn send(&self, to: SocketAddr, packet: &[u8]) -> io::Result<()> {
        let pair = if to.is_ipv4() { &self.v4 } else { &self.v6 };
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
        let address = listener.local_addr();
        Ok(Self {
            address: address.map_err(system("open a transparent listener"))?,
            listener,
            raw,
        })
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
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Whether another call may succeed, or the connection is gone.
fn is_passing(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionAborted
    )
}
