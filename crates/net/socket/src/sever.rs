//! Last resorts: resetting one connection, and asking whether its peer is gone.

use crate::rt;
use crate::sock::Socket;
use core::sync::atomic::Ordering;
use saiga_channel::sys::{self, Errno, Fd, Sys};
use saiga_channel::tuple::Tuple;
use saiga_status::{Reason, State};

/// Resets the connection: the channel's shared words make no sense, the peer died with our
/// bytes unread, or what must go back to TCP cannot without a hole in the stream. The kernel
/// sends RST; the next call that can is told of it.
///
/// # Errors
/// Always ECONNRESET.
pub(crate) fn reset<T>(fd: Fd, socket: &Socket, reason: Reason) -> Sys<T> {
    if !socket.severed.swap(true, Ordering::SeqCst) {
        // connect(2) to AF_UNSPEC dissolves the association (`man 2 connect`): RST.
        let unspecified = [0u8; 16];
        let _ = sys::connect(fd, &unspecified);
        rt::header().count_reset(reason);
        rt::show(
            socket.shown_as.load(Ordering::Relaxed),
            State::Reset,
            reason,
        );
    }
    Err(Errno(libc::ECONNRESET))
}

/// The answer of a call as the application gets it: with the error of a reset it takes that.
pub(crate) fn told(fd: Fd, socket: &Socket, result: Sys<usize>) -> Sys<usize> {
    if result == Err(Errno(libc::ECONNRESET)) && socket.severed.load(Ordering::Relaxed) {
        take_error(fd, socket);
    }
    result
}

/// Whether a reset connection still has its error to tell: as the kernel's, it is told once, and
/// who comes later finds the end, or EPIPE.
pub(crate) fn take_error(fd: Fd, socket: &Socket) -> bool {
    if socket.reset_told.swap(true, Ordering::SeqCst) {
        return false;
    }
    // The kernel has it, too, for whoever uses the descriptor without us.
    let mut error = 0i32;
    let _ = sys::getsockopt(fd, libc::SOL_SOCKET, libc::SO_ERROR, &mut error);
    true
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
