//! A trial anchor at start: packet filters, other rules and security modules may prevent anchors.
//!
//! For each served address, a listener at a spare port gets the rule of a served port, and an
//! anchor is opened from an address that is reserved for documentation (RFC 5737, RFC 3849). The
//! fault names the likely cause. The rule is removed again.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;

use crate::connect::{Anchors, ConnectError, Opening, proceed};
use crate::existing::{self, canonical};
use crate::routes::{Routes, RoutesError};

/// A client that does not exist.
const CLIENT_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const CLIENT_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
const CLIENT_PORT: u16 = 40_000;
/// How long a handshake over loopback may take that normally takes some 20 us.
const LIMIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 500_000_000,
};

/// Why anchors do not work.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// No interface has the address.
    #[error("no interface of this host has the address {address}: correct the setting")]
    NotHere {
        /// The served address.
        address: IpAddr,
    },
    /// The SYN did not arrive.
    #[error(
        "packets from clients to {address} are dropped on lo: a packet filter seems to drop what \
         comes by lo from other addresses; accept it for the served ports"
    )]
    Filtered {
        /// The served address.
        address: IpAddr,
    },
    /// The SYN arrived, and the answer did not.
    #[error(
        "replies from {address} to clients do not come by lo: a routing rule before the gateway's \
         takes them (see ip rule; give the gateway a lower preference), or a packet filter drops \
         them or changes their mark on output"
    )]
    Unanswered {
        /// The served address.
        address: IpAddr,
    },
    /// The SYN was refused.
    #[error("connections to {address} by lo are refused: a packet filter rejects them")]
    Rejected {
        /// The served address.
        address: IpAddr,
    },
    /// The server would see another client.
    #[error(
        "a server at {address} sees {seen} instead of the client {client}: a packet filter \
         translates addresses of packets by lo; except lo from it"
    )]
    Translated {
        /// The served address.
        address: IpAddr,
        /// The client.
        client: SocketAddr,
        /// The client that the server sees.
        seen: SocketAddr,
    },
    /// The anchor was not opened.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The rule for the test was not added or removed.
    #[error(transparent)]
    Routes(#[from] RoutesError),
    /// Another error.
    #[error("the self-test at {address} failed: {source}")]
    System {
        /// The served address.
        address: IpAddr,
        /// The error.
        source: io::Error,
    },
}

/// Opens a trial anchor to every served address. Takes half a second at most for each.
///
/// # Errors
/// The [`Fault`] of the first address that fails.
pub fn self_test(routes: &mut Routes, anchors: &mut Anchors) -> Result<(), Fault> {
    let addresses: BTreeSet<IpAddr> = routes.served().map(|served| served.ip()).collect();
    addresses
        .into_iter()
        .try_for_each(|address| test(routes, anchors, address))
}

fn test(routes: &mut Routes, anchors: &mut Anchors, address: IpAddr) -> Result<(), Fault> {
    let listener = match TcpListener::bind((address, 0)) {
        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
            return Err(Fault::NotHere { address });
        }
        bound => bound.map_err(|source| Fault::System { address, source })?,
    };
    let spare = listener.local_addr();
    let spare = spare.map_err(|source| Fault::System { address, source })?;
    let client = if address.is_ipv4() {
        CLIENT_V4
    } else {
        CLIENT_V6
    };
    let client = SocketAddr::new(client, CLIENT_PORT);
    routes.serve(spare)?;
    let tried = attempt(anchors, client, spare, &listener);
    routes.end(spare)?;
    tried
}

fn attempt(
    anchors: &mut Anchors,
    client: SocketAddr,
    spare: SocketAddr,
    listener: &TcpListener,
) -> Result<(), Fault> {
    let address = spare.ip();
    let system = |source| Fault::System { address, source };
    let mut opening = anchors.connect(client, spare)?;
    if let Opening::Waiting(stream) = opening {
        wait(&stream, PollFlags::OUT).map_err(system)?;
        opening = proceed(stream).map_err(system)?;
    }
    match opening {
        Opening::Established(_) => {
            let seen = accept(listener).map_err(system)?;
            compare(address, client, seen)
        }
        Opening::Refused => Err(Fault::Rejected { address }),
        Opening::Waiting(_) | Opening::Conflict => {
            let arrived = existing::handshakes(spare).map_err(system)?;
            let seen = arrived.first().ok_or(Fault::Filtered { address })?;
            compare(address, client, *seen)?;
            Err(Fault::Unanswered { address })
        }
    }
}

fn compare(address: IpAddr, client: SocketAddr, seen: SocketAddr) -> Result<(), Fault> {
    if seen == client {
        return Ok(());
    }
    Err(Fault::Translated {
        address,
        client,
        seen,
    })
}

/// The client that the server sees. WouldBlock if another listener has got the connection.
fn accept(listener: &TcpListener) -> io::Result<SocketAddr> {
    listener.set_nonblocking(true)?;
    wait(listener, PollFlags::IN)?;
    let (_accepted, seen) = listener.accept()?;
    Ok(canonical(seen))
}

/// Waits for `events` of a socket, at most [`LIMIT`].
fn wait(socket: &impl AsFd, events: PollFlags) -> io::Result<()> {
    retry_on_intr(|| poll(&mut [PollFd::new(socket, events)], Some(&LIMIT)))?;
    Ok(())
}
