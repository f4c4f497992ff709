//! Last resorts: resetting one connection, and asking whether its peer is gone.

use crate::rt;
use crate::sock::Socket;
use core::sync::atomic::Ordering;
use saiga_channel::sys::{self, Errno, Fd, Sys};
use saiga_channel::tuple::Tuple;
use saiga_status::{Reason, State};

/// Resets the connection: the channel's shared words make no sense, or the peer died with
/// our bytes unread. The kernel sends RST; every further call says ECONNRESET.
///
/// # Errors
/// Always ECONNRESET.
pub(crate) fn reset<T>(fd: Fd, socket: &Socket) -> Sys<T> {
    if !socket.severed.swap(true, Ordering::SeqCst) {
        // connect(2) to AF_UNSPEC dissolves the association (`man 2 connect`): RST.
        let unspecified = [0u8; 16];
        let _ = sys::connect(fd, &unspecified);
        rt::header().resets.fetch_add(1, Ordering::Relaxed);
        socket.show(State::Never, Reason::CorruptMemory);
    }
    Err(Errno(libc::ECONNRESET))
}

/// Whether no process has the other end of the connection any more.
pub(crate) fn peer_is_gone(fd: Fd) -> bool {
    let Some(tuple) = Tuple::of(fd) else {
        return true;
    };
    match rt::look_up(&tuple.reversed()) {
        Ok(facts) => facts.inode == 0,
        Err(Errno(libc::ENOENT)) => true,
        Err(_) => false,
    }
}
