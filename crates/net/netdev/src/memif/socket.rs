//! The control socket (SOCK_SEQPACKET): messages with descriptors, and the user at its other end.
//!
//! Nothing waits. The calls do not pass libc, because the gateway runs under the library, which
//! would take the socket for one of an application.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
    accept_with, connect, recvmsg, sendmsg, socket_with,
};

use super::message::{MESSAGE_BYTES, Message};

const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

/// A connected socket.
#[derive(Debug)]
pub(super) struct Socket(OwnedFd);

/// What was received.
#[derive(Debug)]
pub(super) enum Received {
    /// Nothing waits.
    Nothing,
    /// A message, with the descriptor beside it.
    Message(Message, Option<OwnedFd>),
    /// The peer has closed the socket.
    Closed,
    /// The peer has sent what is not a message.
    Garbage,
}

impl Socket {
    /// Takes a connection that waits, if there is one.
    pub(super) fn accept(listener: BorrowedFd<'_>) -> io::Result<Option<Self>> {
        match accept_with(listener, FLAGS) {
            Ok(socket) => Ok(Some(Self(socket))),
            Err(error) => waits_or(error),
        }
    }

    /// Connects to a listener that has room for a connection.
    pub(super) fn connect(path: &Path) -> io::Result<Self> {
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, FLAGS, None)?;
        connect(&socket, &SocketAddrUnix::new(path)?)?;
        Ok(Self(socket))
    }

    /// Whether the process at the other end belongs to root or to the user of this process.
    pub(super) fn is_of_own_user(&self) -> io::Result<bool> {
        let peer = socket_peercred(&self.0)?;
        Ok(peer.uid.is_root() || peer.uid == rustix::process::geteuid())
    }

    pub(super) fn send(&self, message: &Message, beside: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let bytes = message.bytes();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors = beside.as_slice();
        if !descriptors.is_empty() {
            // There is space for one.
            let _pushed = control.push(SendAncillaryMessage::ScmRights(descriptors));
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        sendmsg(&self.0, &[IoSlice::new(&bytes)], &mut control, flags)?;
        Ok(())
    }

    /// Takes the next message. Descriptors beyond one are closed.
    pub(super) fn receive(&self) -> io::Result<Received> {
        // One more byte shows a message that is too long.
        let mut bytes = [0; MESSAGE_BYTES + 1];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let received = match recvmsg(&self.0, &mut parts, &mut control, flags) {
            Ok(received) => received,
            Err(error) => {
                return waits_or(error).map(|nothing| nothing.unwrap_or(Received::Nothing));
            }
        };
        let mut descriptors = Vec::new();
        for beside in control.drain() {
            if let RecvAncillaryMessage::ScmRights(more) = beside {
                descriptors.extend(more);
            }
        }
        let descriptor = descriptors.pop();
        if received.bytes == 0 {
            return Ok(Received::Closed);
        }
        let is_cut = received
            .flags
            .intersects(ReturnFlags::CTRUNC | ReturnFlags::TRUNC);
        let is_whole = received.bytes == MESSAGE_BYTES && !is_cut && descriptors.is_empty();
        let message = bytes.first_chunk().and_then(Message::parse);
        Ok(match message.filter(|_| is_whole) {
            Some(message) => Received::Message(message, descriptor),
            None => Received::Garbage,
        })
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// `None` if the call would wait.
fn waits_or<T>(error: rustix::io::Errno) -> io::Result<Option<T>> {
    match error {
        rustix::io::Errno::AGAIN | rustix::io::Errno::INTR => Ok(None),
        error => Err(error.into()),
    }
}
