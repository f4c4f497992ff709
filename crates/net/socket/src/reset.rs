//! Resets of a connection by the library, and detection of a dead peer.
//!
//! A reset is the last resort: it ends one connection with ECONNRESET instead of losing bytes. Its
//! error is reported to the application once, as the kernel reports its own.

use crate::chan::Chan;
use crate::chaos;
use crate::rt;
use crate::sock::Socket;
use core::sync::atomic::Ordering;
use saiga_channel::layout::STRIDE_SHIFT;
use saiga_channel::sys::{self, Errno, Fd, Sys};
use saiga_channel::tuple::Tuple;
use saiga_status::{Reason, State};

/// Resets the connection: the channel's shared words are invalid, or a downgrade would leave a hole
/// in the stream. The kernel sends RST; the next call that can returns the error.
///
/// # Errors
/// Always ECONNRESET.
pub(crate) fn abort<T>(fd: Fd, socket: &Socket, reason: Reason) -> Sys<T> {
    if !socket.aborted.swap(true, Ordering::SeqCst) {
        // connect(2) to AF_UNSPEC dissolves the association (`man 2 connect`): RST.
        let unspecified = [0u8; 16];
        let _ = sys::connect(fd, &unspecified);
        show_reset(socket, reason);
        chaos::note_reset(reason);
    }
    Err(Errno(libc::ECONNRESET))
}

/// Whether the peer has died with bytes of ours unread in the ring. On TCP that resets the
/// connection (RFC 1122 §4.2.2.13), but the kernel does not know of those bytes. Bytes that the
/// peer sent before stay readable, as after a reset by TCP; from here on nothing can be sent.
///
/// Costs no system call while nothing is unread.
pub(crate) fn notice_peer_death(fd: Fd, socket: &Socket, chan: &Chan) -> bool {
    if socket.peer_died.load(Ordering::Relaxed) {
        return true;
    }
    let unread = || chan.tx_ring().pending(STRIDE_SHIFT).is_some_and(|n| n > 0);
    // After our own FIN the kernel has forgotten a connection that a live peer still reads.
    let ours_ended = socket.tx_shut.load(Ordering::Relaxed);
    // The kernel itself reports the error of a connection that it has reset.
    let reset = || sys::poll_now(fd, 0) & (libc::POLLHUP | libc::POLLNVAL) != 0;
    // Checked twice: only bytes that are unread after the peer has died stay unread.
    if ours_ended || !unread() || reset() || !peer_is_gone(fd) || !unread() {
        return false;
    }
    if !socket.peer_died.swap(true, Ordering::SeqCst) {
        chan.end_tx();
        chan.go_by_tcp();
        // Makes later sends fail with EPIPE and SIGPIPE; bytes that the kernel received stay.
        let _ = sys::shutdown(fd, libc::SHUT_WR);
        show_reset(socket, Reason::PeerGone);
        chan.wake_own_threads();
    }
    true
}

/// Keeps the kernel's ECONNRESET, which it reports once, for the next call: this one returns bytes.
pub(crate) fn keep_for_later(socket: &Socket, error: Errno) {
    if error == Errno(libc::ECONNRESET) && !socket.is_reset() {
        socket.peer_died.store(true, Ordering::SeqCst);
    }
}

fn show_reset(socket: &Socket, reason: Reason) {
    rt::header().count_reset(reason);
    let shown_as = socket.shown_as.load(Ordering::Relaxed);
    rt::show(shown_as, State::Reset, reason);
}

/// The result of a call for the application; marks the error of a reset as reported.
pub(crate) fn report(fd: Fd, socket: &Socket, result: Sys<usize>) -> Sys<usize> {
    if result == Err(Errno(libc::ECONNRESET)) && socket.is_reset() {
        take_error(fd, socket);
    }
    result
}

/// Whether a reset connection still has its error to report. As in the kernel, it is reported once,
/// and later calls find the end of the stream, or EPIPE.
pub(crate) fn take_error(fd: Fd, socket: &Socket) -> bool {
    if socket.reset_reported.swap(true, Ordering::SeqCst) {
        return false;
    }
    // Clear the kernel's copy, too, for programs that use the descriptor without the library.
    let mut error = 0i32;
    let _ = sys::getsockopt(fd, libc::SOL_SOCKET, libc::SO_ERROR, &mut error);
    true
}

/// Whether no process has the other end of the connection open any more.
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
