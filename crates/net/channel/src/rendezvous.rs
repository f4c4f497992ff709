//! The rendezvous: how the two ends of a connection set up their channel.
//!
//! The end with the lower address offers: it listens on an abstract name made of the connection's
//! addresses. The other end connects and sends one message with the slot that it proposes and, the
//! first time, the segment. Nothing here waits: each step is tried inside a call of the application
//! and given up after a while. The process behind the name is checked by comparing `SO_PEERCRED`
//! with the kernel's owner of the socket.

#![expect(unsafe_code, reason = "sendmsg and recvmsg with a descriptor")]

use crate::layout::{PROTOCOL, SLOTS, START_SHIFT, STRIDE_SHIFT};
use crate::sys::{self, Errno, Fd, Sys};
use crate::tuple::Tuple;
use syscalls::Sysno;

const PREFIX: &[u8] = b"saiga-offer-";
const KEY_BYTES: usize = 36;
const NAME_BYTES: usize = 2 + 1 + PREFIX.len() + 2 * KEY_BYTES;
const KIND: i32 = libc::SOCK_SEQPACKET | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
const MAGIC: u64 = u64::from_le_bytes(*b"saiga/ch");

/// The proposal that the connecting end sends. A decoded proposal uses our protocol, its slot
/// exists and its rings fit their storage; the caller compares the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proposal {
    /// Protocol of the sender.
    pub protocol: u32,
    /// Index of the proposed slot.
    pub slot: u32,
    /// Id of the segment with the slot.
    pub segment: u64,
    /// Logarithm of the largest ring capacity that the sender will use.
    pub max_shift: u32,
    /// The connection, as [`Tuple::key`].
    pub key: [u8; KEY_BYTES],
}

/// Size of an encoded proposal.
const PROPOSAL_BYTES: usize = 8 + 4 + 4 + 8 + 4 + KEY_BYTES;

/// The offering end's refusal, sent as one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The segment is not known: propose again and send it.
    UnknownSegment,
    /// The proposal uses another protocol.
    Version,
    /// Any other reason: stay on TCP.
    No,
}

/// The process at the other end of an AF_UNIX connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credentials {
    /// Process id in our PID namespace; 0 if it has none there.
    pub pid: u32,
    /// User id in our user namespace.
    pub uid: u32,
}

fn address(tuple: &Tuple) -> [u8; NAME_BYTES] {
    let mut out = [0; NAME_BYTES];
    let family = u16::try_from(libc::AF_UNIX).unwrap_or(0).to_ne_bytes();
    out[..2].copy_from_slice(&family);
    out[3..3 + PREFIX.len()].copy_from_slice(PREFIX);
    let digits = b"0123456789abcdef";
    for (i, byte) in tuple.key().iter().enumerate() {
        let at = 3 + PREFIX.len() + 2 * i;
        out[at] = digits[usize::from(byte >> 4)];
        out[at + 1] = digits[usize::from(byte & 15)];
    }
    out
}

/// Listens on the connection's name.
///
/// # Errors
/// EADDRINUSE when another socket has the name; EMFILE and other errors of the system calls.
pub fn offer(tuple: &Tuple, floor: usize) -> Sys<Fd> {
    let fd = sys::move_up(sys::socket(libc::AF_UNIX, KIND, 0)?, floor)?;
    match sys::bind(fd, &address(tuple)).and_then(|()| sys::listen(fd, 1)) {
        Ok(()) => Ok(fd),
        Err(e) => {
            sys::close(fd);
            Err(e)
        }
    }
}

/// Connects to the other end's offer.
///
/// # Errors
/// ECONNREFUSED while there is no offer; EAGAIN when its backlog is full; EACCES and others.
pub fn connect(tuple: &Tuple, floor: usize) -> Sys<Fd> {
    let fd = sys::socket(libc::AF_UNIX, KIND, 0)?;
    if let Err(e) = sys::connect(fd, &address(tuple)) {
        sys::close(fd);
        return Err(e);
    }
    sys::move_up(fd, floor)
}

/// Accepts one visitor of an offer.
///
/// # Errors
/// EAGAIN while there is no visitor.
pub fn accept(listener: Fd, floor: usize) -> Sys<Fd> {
    sys::move_up(
        sys::accept(listener, libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC)?,
        floor,
    )
}

/// The process at the other end of an AF_UNIX connection.
///
/// # Errors
/// The errors of `getsockopt(2)`.
pub fn credentials(fd: Fd) -> Sys<Credentials> {
    let mut raw = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    sys::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, &mut raw)?;
    Ok(Credentials {
        pid: u32::try_from(raw.pid).unwrap_or(0),
        uid: raw.uid,
    })
}

impl Proposal {
    /// A proposal for `tuple` in our protocol.
    #[must_use]
    pub fn new(tuple: &Tuple, segment: u64, slot: u32, max_shift: u32) -> Self {
        Self {
            protocol: PROTOCOL,
            slot,
            segment,
            max_shift,
            key: tuple.key(),
        }
    }

    /// Encodes the message: magic, protocol, slot, segment, ring, key; little-endian.
    #[must_use]
    pub fn encode(&self) -> [u8; PROPOSAL_BYTES] {
        let Self {
            protocol,
            slot,
            segment,
            max_shift,
            key,
        } = self;
        let mut out = [0; PROPOSAL_BYTES];
        out[..8].copy_from_slice(&MAGIC.to_le_bytes());
        out[8..12].copy_from_slice(&protocol.to_le_bytes());
        out[12..16].copy_from_slice(&slot.to_le_bytes());
        out[16..24].copy_from_slice(&segment.to_le_bytes());
        out[24..28].copy_from_slice(&max_shift.to_le_bytes());
        out[28..].copy_from_slice(key);
        out
    }

    /// Decodes a message. Another protocol is recognised by its number alone: the following bytes
    /// may have any length and meaning.
    ///
    /// # Errors
    /// [`Refusal::Version`] for another protocol, [`Refusal::No`] for any other message that
    /// [`encode`](Self::encode) cannot produce.
    pub fn decode(bytes: &[u8]) -> Result<Self, Refusal> {
        let (magic, rest) = bytes.split_first_chunk().ok_or(Refusal::No)?;
        let (protocol, rest) = rest.split_first_chunk().ok_or(Refusal::No)?;
        if u64::from_le_bytes(*magic) != MAGIC {
            return Err(Refusal::No);
        }
        let protocol = u32::from_le_bytes(*protocol);
        if protocol != PROTOCOL {
            return Err(Refusal::Version);
        }
        Self::decode_body(protocol, rest)
            .filter(Self::is_sane)
            .ok_or(Refusal::No)
    }

    fn decode_body(protocol: u32, body: &[u8]) -> Option<Self> {
        let (slot, rest) = body.split_first_chunk()?;
        let (segment, rest) = rest.split_first_chunk()?;
        let (max_shift, key) = rest.split_first_chunk()?;
        Some(Self {
            protocol,
            slot: u32::from_le_bytes(*slot),
            segment: u64::from_le_bytes(*segment),
            max_shift: u32::from_le_bytes(*max_shift),
            key: key.try_into().ok()?,
        })
    }

    fn is_sane(&self) -> bool {
        let slots = u32::try_from(SLOTS).unwrap_or(0);
        self.slot < slots && (START_SHIFT..=STRIDE_SHIFT).contains(&self.max_shift)
    }
}

/// Space for one descriptor in a control message, aligned as `struct cmsghdr`.
#[repr(C, align(8))]
struct Control([u8; 24]);
/// CMSG_LEN of one descriptor.
const ONE_DESCRIPTOR: usize = 20;

fn message(iov: &mut libc::iovec, control: Option<&mut Control>) -> libc::msghdr {
    // SAFETY: all-zero is a valid msghdr: no name, no vectors, no control data.
    let mut msg: libc::msghdr = unsafe { core::mem::zeroed() };
    msg.msg_iov = iov;
    msg.msg_iovlen = 1;
    if let Some(c) = control {
        msg.msg_control = c.0.as_mut_ptr().cast();
        msg.msg_controllen = c.0.len() as _;
    }
    msg
}

/// Sends a proposal, with the segment's descriptor if the other end does not have the segment.
///
/// # Errors
/// The errors of `sendmsg(2)`.
pub fn propose(fd: Fd, proposal: &Proposal, segment: Option<Fd>) -> Sys<()> {
    let mut bytes = proposal.encode();
    let mut iov = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    let mut control = Control([0; 24]);
    let carried = segment.map(|passed| {
        control.0[..8].copy_from_slice(&ONE_DESCRIPTOR.to_ne_bytes());
        control.0[8..12].copy_from_slice(&libc::SOL_SOCKET.to_ne_bytes());
        control.0[12..16].copy_from_slice(&libc::SCM_RIGHTS.to_ne_bytes());
        control.0[16..20].copy_from_slice(&passed.to_ne_bytes());
        &mut control
    });
    let msg = message(&mut iov, carried);
    let flags = sys::reg(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL);
    // SAFETY: the message and all that it points to outlive the call.
    unsafe {
        sys::call(
            Sysno::sendmsg,
            [sys::reg(fd), &raw const msg as usize, flags, 0, 0, 0],
        )
    }
    .map(drop)
}

/// Receives a proposal and, if it carries one, a descriptor, which the caller then owns.
///
/// # Errors
/// EAGAIN while there is none; EPROTONOSUPPORT for another protocol and EPROTO for an invalid
/// message (a descriptor passed with it is closed).
pub fn receive(fd: Fd) -> Sys<(Proposal, Option<Fd>)> {
    let mut bytes = [0u8; PROPOSAL_BYTES + 1];
    let mut iov = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    let mut control = Control([0; 24]);
    let mut msg = message(&mut iov, Some(&mut control));
    msg.msg_controllen = ONE_DESCRIPTOR as _; // With the padding, there would be room for two.
    let flags = sys::reg(libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC);
    let args = [sys::reg(fd), &raw mut msg as usize, flags, 0, 0, 0];
    // SAFETY: the message and all that it points to outlive the call.
    let len = unsafe { sys::call(Sysno::recvmsg, args) }?;
    let got = passed_descriptor(&control, msg.msg_controllen);
    Proposal::decode(bytes.get(..len).unwrap_or(&[]))
        .map(|proposal| (proposal, got))
        .map_err(|refusal| {
            if let Some(fd) = got {
                sys::close(fd);
            }
            Errno(match refusal {
                Refusal::Version => libc::EPROTONOSUPPORT,
                Refusal::UnknownSegment | Refusal::No => libc::EPROTO,
            })
        })
}

/// The descriptor in a received control message.
fn passed_descriptor(control: &Control, len: usize) -> Option<Fd> {
    let int = |at: usize| {
        control
            .0
            .get(at..at + 4)
            .map(|b| i32::from_ne_bytes([b[0], b[1], b[2], b[3]]))
    };
    let rights = len >= ONE_DESCRIPTOR
        && int(8) == Some(libc::SOL_SOCKET)
        && int(12) == Some(libc::SCM_RIGHTS);
    if rights { int(16) } else { None }
}

/// Sends a refusal of a proposal.
pub fn refuse(fd: Fd, refusal: Refusal) {
    let byte = match refusal {
        Refusal::UnknownSegment => b'u',
        Refusal::Version => b'v',
        Refusal::No => b'n',
    };
    let _ = sys::sendto(fd, &[byte], libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL, &[]);
}

/// The offering end's refusal, or `No` if it has closed; `None` while there is no answer.
#[must_use]
pub fn refusal(fd: Fd) -> Option<Refusal> {
    let mut byte = [0];
    match sys::recv(fd, &mut byte, libc::MSG_DONTWAIT) {
        Err(Errno(libc::EAGAIN)) => None,
        Ok(1) if byte == *b"u" => Some(Refusal::UnknownSegment),
        Ok(1) if byte == *b"v" => Some(Refusal::Version),
        Ok(_) | Err(_) => Some(Refusal::No),
    }
}

#[cfg(test)]
mod tests;
