//! TCP connections of a served port that the kernel carries itself.
//!
//! Spec: `man 7 sock_diag`. Their hosts are left to the kernel, because the rule of the port would
//! cut them. A connection whose other end is a socket of this host is not one of them: its replies
//! go by `lo` in any case. Those in TIME-WAIT are not counted either: they have no data to lose.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::net::{IpAddr, SocketAddr};

use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::{
    ExtensionFlags, InetRequest, InetResponseHeader, SocketId, StateFlags,
};
use netlink_packet_sock_diag::{SockDiagDestroy, SockDiagMessage};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;

use crate::netlink::Netlink;

/// States in which a peer still expects something (RFC 9293 §3.3.2).
const LIVE: StateFlags = StateFlags::ESTABLISHED
    .union(StateFlags::SYN_RECV)
    .union(StateFlags::FIN_WAIT1)
    .union(StateFlags::FIN_WAIT2)
    .union(StateFlags::CLOSE_WAIT)
    .union(StateFlags::LAST_ACK)
    .union(StateFlags::CLOSING);
/// States of include/net/tcp_states.h.
pub(crate) const ESTABLISHED: u8 = 1;
pub(crate) const SYN_SENT: u8 = 2;
pub(crate) const SYN_RECEIVED: u8 = 3;
pub(crate) const CLOSE_WAIT: u8 = 8;

/// Whether both ends have agreed on a connection, and it is not in TIME-WAIT.
pub(crate) fn is_live(state: u8) -> bool {
    // ESTABLISHED, FIN-WAIT-1, FIN-WAIT-2, CLOSE-WAIT, LAST-ACK, CLOSING.
    matches!(state, 1 | 4 | 5 | 8 | 9 | 11)
}

/// Other hosts with live connections to `served`. IPv4-mapped addresses are IPv4.
///
/// # Errors
/// The errors of netlink: ENOENT or EPROTONOSUPPORT in a kernel without INET_DIAG.
pub fn hosts(served: SocketAddr) -> io::Result<BTreeSet<IpAddr>> {
    let served = canonical(served);
    let mut diag = Netlink::open(NETLINK_SOCK_DIAG)?;
    let (mut theirs, mut ours) = (Vec::new(), HashSet::new());
    // A dual-stack server has IPv4 connections in sockets of IPv6.
    for family in [AF_INET, AF_INET6] {
        if served.is_ipv6() && family == AF_INET {
            continue;
        }
        for header in dump(&mut diag, family, LIVE, (served.port(), 0))? {
            let (local, remote) = ends(&header.socket_id);
            if local == served {
                theirs.push(remote);
            }
        }
        for header in dump(&mut diag, family, StateFlags::all(), (0, served.port()))? {
            let (local, remote) = ends(&header.socket_id);
            if remote == served {
                ours.insert(local);
            }
        }
    }
    theirs.retain(|remote| !ours.contains(remote));
    Ok(theirs.iter().map(SocketAddr::ip).collect())
}

/// Clients whose SYN has arrived at `served`, and whose handshake is not over.
pub(crate) fn handshakes(served: SocketAddr) -> io::Result<Vec<SocketAddr>> {
    let mut diag = Netlink::open(NETLINK_SOCK_DIAG)?;
    let headers = dump(
        &mut diag,
        family(served),
        StateFlags::SYN_RECV,
        (served.port(), 0),
    )?;
    let ends = headers.iter().map(|header| ends(&header.socket_id));
    let ours = ends.filter(|(local, _)| *local == served);
    Ok(ours.map(|(_, remote)| remote).collect())
}

/// The state of the connection from `local` to `remote`, or of the listener that would get it;
/// `None` if there is neither.
pub(crate) fn state(
    diag: &mut Netlink,
    local: SocketAddr,
    remote: SocketAddr,
) -> io::Result<Option<u8>> {
    Ok(find(diag, local, remote)?.map(|header| header.state))
}

/// Whether no process has the end at `local` of a connection with `remote`: it was closed, or is
/// gone.
///
/// # Errors
/// The errors of netlink: ENOENT or EPROTONOSUPPORT in a kernel without INET_DIAG.
pub fn is_orphaned(local: SocketAddr, remote: SocketAddr) -> io::Result<bool> {
    let mut diag = Netlink::open(NETLINK_SOCK_DIAG)?;
    let found = find(&mut diag, canonical(local), canonical(remote))?;
    // Instead of a connection that is gone, the listener is found.
    let live = found.filter(|header| is_live(header.state));
    Ok(live.is_none_or(|header| header.inode == 0))
}

/// Ends the connection from `local` to `remote` if no process has it any more, and tells its other
/// end. Returns whether there was one.
pub(crate) fn end_orphan(
    diag: &mut Netlink,
    local: SocketAddr,
    remote: SocketAddr,
) -> io::Result<bool> {
    let Some(header) = find(diag, local, remote)?.filter(|header| header.inode == 0) else {
        return Ok(false);
    };
    let found = request(family(local), StateFlags::all(), header.socket_id);
    let destroy = SockDiagDestroy::new(SockDiagMessage::InetRequest(found));
    match diag.change(destroy, 0) {
        // A kernel without INET_DIAG_DESTROY.
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(false),
        // It has just ended.
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(true),
        destroyed => destroyed.map(|()| true),
    }
}

fn find(
    diag: &mut Netlink,
    local: SocketAddr,
    remote: SocketAddr,
) -> io::Result<Option<InetResponseHeader>> {
    let socket_id = SocketId {
        source_port: local.port(),
        destination_port: remote.port(),
        source_address: local.ip(),
        destination_address: remote.ip(),
        interface_id: 0,
        cookie: [0xff; 8], // INET_DIAG_NOCOOKIE
    };
    let asked = request(family(local), StateFlags::all(), socket_id);
    let answer = match diag.ask(SockDiagMessage::InetRequest(asked)) {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(None),
        answer => answer?,
    };
    let SockDiagMessage::InetResponse(response) = answer else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    Ok(Some(response.header))
}

fn family(address: SocketAddr) -> u8 {
    if address.is_ipv4() { AF_INET } else { AF_INET6 }
}

/// Sockets of one family in `states` with the given source and destination ports; 0 is any.
fn dump(
    diag: &mut Netlink,
    family: u8,
    states: StateFlags,
    (source_port, destination_port): (u16, u16),
) -> io::Result<Vec<InetResponseHeader>> {
    let mut socket_id = if family == AF_INET {
        SocketId::new_v4()
    } else {
        SocketId::new_v6()
    };
    socket_id.source_port = source_port;
    socket_id.destination_port = destination_port;
    let asked = request(family, states, socket_id);
    let answers = diag.dump(&SockDiagMessage::InetRequest(asked))?;
    let headers = answers.into_iter().filter_map(|answer| {
        let SockDiagMessage::InetResponse(response) = answer else {
            return None;
        };
        Some(response.header)
    });
    Ok(headers.collect())
}

fn request(family: u8, states: StateFlags, socket_id: SocketId) -> InetRequest {
    InetRequest {
        family,
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::empty(),
        states,
        socket_id,
    }
}

fn ends(id: &SocketId) -> (SocketAddr, SocketAddr) {
    let local = SocketAddr::new(id.source_address, id.source_port);
    let remote = SocketAddr::new(id.destination_address, id.destination_port);
    (canonical(local), canonical(remote))
}

/// The address without the forms that IPv6 sockets give to it.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
