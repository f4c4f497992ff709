//! Conditions that one end checks by itself before it searches for the other.

use crate::chan::Chan;
use crate::epoll;
use crate::send;
use crate::sock::Socket;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use saiga_channel::sys::{self, Fd};
use saiga_status::Reason;

/// Whether the process may use the call in which bound sockets wait: a seccomp filter inherited
/// over exec may allow only the application's own calls. Asked until it succeeds once.
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
/// not wake it. A blocking socket waits in receives and sends, unless all receives seen have
/// MSG_DONTWAIT.
pub(super) fn waits_unseen(fd: Fd, socket: &Socket) -> bool {
    socket.nonblock.waits_elsewhere(fd) && !epoll::is_waited_for(socket)
}

/// Handles a receive on a channel that finds nothing. True if the program was never seen to wait
/// and is about to wait where no hook sees it: the rings have ended then, and bytes that have come
/// since can be received.
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

/// Our counts of sent and received bytes beside the kernel's.
pub(super) enum Totals {
    Agree,
    Differ,
    /// The kernel's numbers changed all the time: bytes are coming or leaving.
    Unknown,
}

/// Whether the totals agree; asks the kernel for its own.
pub(super) fn totals(fd: Fd, socket: &Socket) -> Totals {
    let kernel = (
        send::sent_by_kernel(fd, socket),
        send::delivered_by_kernel(fd),
    );
    let (Some(sent), Some(received)) = kernel else {
        return Totals::Unknown;
    };
    let is_ours = |count: u64, ours: &AtomicU64| count == ours.load(Ordering::Relaxed);
    if is_ours(sent, &socket.sent) && is_ours(received, &socket.received) {
        Totals::Agree
    } else {
        Totals::Differ
    }
}

pub(super) fn is_tcp(fd: Fd) -> bool {
    let mut protocol = 0i32;
    let known = sys::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PROTOCOL, &mut protocol).is_ok();
    known && protocol == libc::IPPROTO_TCP
}

/// Takes TCP_NOTSENT_LOWAT over, which a connection also inherits from its listener.
pub(crate) fn read_unsent_mark(fd: Fd, socket: &Socket) {
    let mut bytes = 0u32;
    let known = sys::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, &mut bytes).is_ok();
    let bytes = if known { bytes } else { 0 };
    socket.most_unread.store(bytes.into(), Ordering::Relaxed);
}

/// Whether SO_RCVLOWAT is above one; a connection also inherits it from its listener.
pub(crate) fn waits_for_more_than_a_byte(fd: Fd) -> bool {
    let mut bytes = 0i32;
    let known = sys::getsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT, &mut bytes).is_ok();
    known && bytes > 1
}
