//! What one end checks by itself before it looks for the other.

use crate::chan::Chan;
use crate::epoll;
use crate::sock::Socket;
use core::sync::atomic::{AtomicBool, Ordering};
use saiga_channel::sys::{self, Fd};
use saiga_status::Reason;

/// Whether the process may use the call in which bound sockets wait: a filter that came over exec
/// may have allowed the application's own calls only. Asked once.
pub(super) fn may_wait() -> bool {
    static ASKED: AtomicBool = AtomicBool::new(false);
    if ASKED.load(Ordering::Relaxed) {
        return true;
    }
    let now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let may = sys::ppoll(&mut [], Some(now)).is_ok();
    ASKED.store(may, Ordering::Relaxed);
    may
}

/// Whether the program seems to wait for the connection where no hook sees it: then a ring could
/// not wake it. A socket that blocks is waited for by receiving and sending, unless receives with
/// MSG_DONTWAIT are all that is seen.
pub(super) fn waits_unseen(fd: Fd, socket: &Socket) -> bool {
    socket.nonblock.waits_elsewhere(fd) && !epoll::is_waited_for(socket)
}

/// A receive on a channel finds nothing. True when the program has never been seen to wait and is
/// about to, where no hook sees it: the rings have ended then, and what has come in the meantime is
/// there to be received.
pub(crate) fn leave_for_unseen_wait(fd: Fd, socket: &Socket, flags: i32) -> bool {
    socket.nonblock.note_nothing(flags);
    if !socket.nonblock.has_never_waited() {
        return false;
    }
    let unseen = (socket.state_lock.try_lock()).is_some_and(|_state| waits_unseen(fd, socket));
    let chan = Chan::of(socket).filter(|chan| unseen && !chan.rx_ring().frozen());
    chan.is_some_and(|chan| {
        socket.note_end(Reason::WaitsUnseen);
        chan.freeze_tx();
        chan.freeze_rx();
        true
    })
}

pub(super) fn is_tcp(fd: Fd) -> bool {
    let mut protocol = 0i32;
    let known = sys::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PROTOCOL, &mut protocol).is_ok();
    known && protocol == libc::IPPROTO_TCP
}

/// Whether SO_RCVLOWAT is above one; a connection has it from its listener, too.
pub(crate) fn waits_for_more_than_a_byte(fd: Fd) -> bool {
    let mut bytes = 0i32;
    let known = sys::getsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT, &mut bytes).is_ok();
    known && bytes > 1
}
