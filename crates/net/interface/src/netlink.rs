//! Netlink sockets: requests with their answers, and notifications.
//!
//! Source: netlink(7). The kernel answers a request before send(2) returns, and goes on with a dump
//! in each recv(2), so nothing here waits. Only the kernel is listened to: a process with
//! CAP_NET_ADMIN can send to the groups of rtnetlink, too, but not with port 0.

use std::io;

use netlink_packet_core::{NLM_F_DUMP_INTR, NLMSG_DONE, NLMSG_ERROR, NLMSG_NOOP};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

use crate::message::{Request, messages};

/// Room for a datagram. The kernel fills at most 32 KiB in a dump (af_netlink.c, `netlink_dump`).
pub(crate) const DATAGRAM_BYTES: usize = 64 << 10;

/// Why the kernel did not do what it was asked by netlink.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    /// The socket does not work: no descriptor is free, or memory is short.
    #[error("a netlink socket failed: {0}")]
    Socket(#[source] io::Error),
    /// The process lacks the right.
    #[error("not permitted to {doing}: this needs CAP_NET_ADMIN in the network namespace")]
    Denied {
        /// What was asked, as an infinitive.
        doing: &'static str,
    },
    /// The kernel refuses it.
    #[error("the kernel refuses to {doing}: {source}")]
    Refused {
        /// What was asked, as an infinitive.
        doing: &'static str,
        /// The error of the kernel.
        source: io::Error,
    },
}

/// Whether a dump is of one state of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dump {
    Consistent,
    /// Something changed during the dump, which may lack entries (`NLM_F_DUMP_INTR`).
    Interrupted,
}

/// A socket for requests.
#[derive(Debug)]
pub(crate) struct Client {
    socket: Socket,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Client {
    pub(crate) fn open() -> Result<Self, NetlinkError> {
        let socket = open(0).map_err(NetlinkError::Socket)?;
        // The kernel applies the filters of dumps to strict sockets only.
        socket
            .set_netlink_get_strict_chk(true)
            .map_err(NetlinkError::Socket)?;
        Ok(Self {
            socket,
            sequence: 0,
            buffer: vec![0; DATAGRAM_BYTES],
        })
    }

    /// Makes a request, which is a dump or has `NLM_F_ACK`, and gives the messages of the answer to
    /// `each`, without their headers.
    pub(crate) fn request(
        &mut self,
        doing: &'static str,
        request: Request,
        mut each: impl FnMut(&[u8]),
    ) -> Result<Dump, NetlinkError> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = request.finish(self.sequence);
        self.socket
            .send(&request, 0)
            .map_err(NetlinkError::Socket)?;
        let mut dump = Dump::Consistent;
        loop {
            let length = receive(&self.socket, &mut self.buffer).map_err(NetlinkError::Socket)?;
            for message in messages(&self.buffer[..length]) {
                // The rest of the answer to a request that failed.
                if message.sequence_number() != self.sequence {
                    continue;
                }
                if message.flags() & NLM_F_DUMP_INTR != 0 {
                    dump = Dump::Interrupted;
                }
                match message.message_type() {
                    NLMSG_NOOP => {}
                    NLMSG_DONE | NLMSG_ERROR => {
                        return check(doing, message.payload()).map(|()| dump);
                    }
                    _ => each(message.payload()),
                }
            }
        }
    }
}

/// Opens a socket that receives the notifications of groups (`RTMGRP_LINK` and others).
pub(crate) fn open(groups: u32) -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind(&SocketAddr::new(0, groups))?;
    // The kernel refuses what other processes send to this socket alone.
    socket.connect(&SocketAddr::new(0, 0))?;
    Ok(socket)
}

/// Receives a datagram and returns its length, which is 0 if another process has sent it.
///
/// # Errors
/// `EAGAIN` if there is none. `ENOBUFS` if datagrams were lost, or one is larger than the buffer.
pub(crate) fn receive(socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    let (length, sender) = socket.recv_from(&mut &mut *buffer, flags)?;
    if sender.port_number() != 0 {
        return Ok(0);
    }
    // With MSG_TRUNC, this is the length before the datagram was cut.
    if length > buffer.len() {
        return Err(io::Error::from_raw_os_error(libc::ENOBUFS));
    }
    Ok(length)
}

/// The result at the end of an answer: a negative error number, or nothing after an empty dump.
fn check(doing: &'static str, payload: &[u8]) -> Result<(), NetlinkError> {
    let code = payload.first_chunk().copied().map_or(0, i32::from_ne_bytes);
    if code >= 0 {
        return Ok(());
    }
    let source = io::Error::from_raw_os_error(code.saturating_neg());
    if source.kind() == io::ErrorKind::PermissionDenied {
        return Err(NetlinkError::Denied { doing });
    }
    Err(NetlinkError::Refused { doing, source })
}
