//! Asks the kernel about one exact TCP connection (`man 7 sock_diag`).
//!
//! Only sock_diag can show that the other end of a connection is a socket of this network
//! namespace, and its user: both are needed before a channel is offered.

use crate::sys::{self, Errno, Fd, Sys};
use crate::tuple::Tuple;

/// The kernel's data about a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketInfo {
    /// User id of the socket, in this user namespace.
    pub uid: u32,
    /// Inode; 0 when no descriptor refers to the socket any more.
    pub inode: u32,
    /// TCP state (`include/net/tcp_states.h`), 1 is ESTABLISHED.
    pub state: u8,
    /// Whether its process has [marked](mark) it; `None` in a kernel without this field (before
    /// 5.10).
    pub marked: Option<bool>,
}

const NETLINK_SOCK_DIAG: i32 = 4;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const REQUEST_BYTES: usize = 16 + 56;
/// Offsets in `struct inet_diag_msg`, behind the 16 bytes of `struct nlmsghdr`.
const STATE_AT: usize = 16 + 1;
const UID_AT: usize = 16 + 64;
const INODE_AT: usize = 16 + 68;
/// The attributes behind `struct inet_diag_msg`, each a length and a type before its value.
const ATTRIBUTES_AT: usize = 16 + 72;
/// INET_DIAG_SOCKOPT, a `struct inet_diag_sockopt` of bit fields.
const SOCKOPT: u16 = 22;
const MC_LOOP_BIT: u32 = 4;

/// Marks a TCP socket for the process at its other end, which sees the mark by [`lookup`]; or
/// removes the mark. The mark is IP_MULTICAST_LOOP switched off: an option of the socket that TCP
/// ignores, and that needs neither a privilege nor a descriptor.
///
/// # Errors
/// The errors of `setsockopt(2)`.
pub fn mark(fd: Fd, marked: bool) -> Sys<()> {
    let looped = i32::from(!marked);
    sys::setsockopt(fd, libc::IPPROTO_IP, libc::IP_MULTICAST_LOOP, &looped)
}

/// Opens a sock_diag socket, at `floor` or above.
///
/// # Errors
/// EMFILE, or EPROTONOSUPPORT in a kernel without sock_diag.
pub fn open(floor: usize) -> Sys<Fd> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
    sys::move_up(
        sys::socket(libc::AF_NETLINK, kind, NETLINK_SOCK_DIAG)?,
        floor,
    )
}

/// Looks up the socket whose own addresses of the connection are `tuple`.
///
/// # Errors
/// ENOENT if this network namespace has no such socket; EPROTO for an invalid answer.
pub fn lookup(fd: Fd, tuple: &Tuple) -> Sys<SocketInfo> {
    match lookup_family(fd, tuple, libc::AF_INET) {
        // A dual-stack socket is found under AF_INET as well; a pure IPv6 one is not.
        Err(_) => lookup_family(fd, tuple, libc::AF_INET6),
        found => found,
    }
}

fn lookup_family(fd: Fd, tuple: &Tuple, family: i32) -> Sys<SocketInfo> {
    let request = request(tuple, family).ok_or(Errno(libc::ENOENT))?;
    sys::sendto(fd, &request, 0, &[])?;
    let mut answer = [0u8; 512];
    // The kernel has answered when the request is sent, unless it had no memory for the answer.
    let len = sys::recv(fd, &mut answer, libc::MSG_DONTWAIT)?;
    parse(answer.get(..len).unwrap_or(&[]))
}

/// `struct nlmsghdr` and `struct inet_diag_req_v2` for an exact lookup.
fn request(tuple: &Tuple, family: i32) -> Option<[u8; REQUEST_BYTES]> {
    let mut out = [0u8; REQUEST_BYTES];
    out[..4].copy_from_slice(&u32::try_from(REQUEST_BYTES).ok()?.to_ne_bytes());
    out[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    out[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    out[16] = u8::try_from(family).ok()?;
    out[17] = u8::try_from(libc::IPPROTO_TCP).ok()?;
    out[20..24].copy_from_slice(&u32::MAX.to_ne_bytes()); // every state
    out[24..26].copy_from_slice(&tuple.local.port.to_be_bytes());
    out[26..28].copy_from_slice(&tuple.remote.port.to_be_bytes());
    if family == libc::AF_INET {
        out[28..32].copy_from_slice(&tuple.local.v4()?);
        out[44..48].copy_from_slice(&tuple.remote.v4()?);
    } else {
        out[28..44].copy_from_slice(&tuple.local.address);
        out[44..60].copy_from_slice(&tuple.remote.address);
    }
    out[64..72].fill(0xff); // INET_DIAG_NOCOOKIE
    Some(out)
}

/// The first byte of INET_DIAG_SOCKOPT, its bits counted from the lowest.
fn options(answer: &[u8]) -> Option<u8> {
    let mut rest = answer.get(ATTRIBUTES_AT..)?;
    loop {
        let half = |at: usize| Some(u16::from_ne_bytes([*rest.get(at)?, *rest.get(at + 1)?]));
        let (len, kind) = (usize::from(half(0)?), half(2)?);
        if kind == SOCKOPT && len > 4 {
            let bits = *rest.get(4)?;
            // The compiler of a big-endian kernel puts bit fields at the highest bits first.
            return Some(if cfg!(target_endian = "big") {
                bits.reverse_bits()
            } else {
                bits
            });
        }
        rest = rest.get(len.max(4).next_multiple_of(4)..)?;
    }
}

fn parse(answer: &[u8]) -> Sys<SocketInfo> {
    let word = |at: usize| -> Option<u32> {
        Some(u32::from_ne_bytes(answer.get(at..at + 4)?.try_into().ok()?))
    };
    let kind = answer.get(4..6).map(|b| u16::from_ne_bytes([b[0], b[1]]));
    if kind == Some(2) {
        // NLMSG_ERROR carries a negative errno.
        let code = word(16).unwrap_or(0);
        return Err(Errno(0i32.wrapping_sub_unsigned(code)));
    }
    let facts = || {
        Some(SocketInfo {
            uid: word(UID_AT)?,
            inode: word(INODE_AT)?,
            state: *answer.get(STATE_AT)?,
            marked: options(answer).map(|bits| bits & (1 << MC_LOOP_BIT) == 0),
        })
    };
    match kind {
        Some(SOCK_DIAG_BY_FAMILY) => facts().ok_or(Errno(libc::EPROTO)),
        _ => Err(Errno(libc::EPROTO)),
    }
}

#[cfg(test)]
mod tests;
