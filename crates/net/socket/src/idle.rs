//! What a sleeper does about idle channels: it gives their memory back, once.
//!
//! A thread that is about to sleep looks at the rings that it writes. While one of them
//! may be given back soon, the sleep is cut short, a second at most, for one more look;
//! then it goes on for as long as the application wants. So an idle process is woken
//! once or twice after its last byte, and never again (but see `death_may_hide`). Only the
//! producer gives memory back, under its own lock: it alone knows that no byte is on its way.

use crate::chan::Chan;
use crate::epoll::{EpollSet, SetSegment};
use crate::sock::Socket;
use crate::{allowance, clock, send, sever};
use core::sync::atomic::Ordering;
use saiga_channel::layout::STRIDE_SHIFT;
use saiga_channel::sys::{self, Fd};

/// A ring into which nothing was written for so long has been idle.
const QUIET_NS: u64 = 1_000_000_000;

/// Looks at the ring that we write, and gives its memory back if it is idle by now. Otherwise
/// says in how many nanoseconds that may be; `None`: it has no memory, or bytes that stay unread.
/// Caller holds a pin.
pub(crate) fn look(fd: Fd, socket: &'static Socket, chan: &Chan, now_ns: u64) -> Option<u64> {
    if send::awaits_notice(chan) && socket.switch_ordered.load(Ordering::SeqCst) {
        // A thread that waits for room is not told when the peer leaves a receive that did not see
        // the switch.
        if send::overtake(fd, socket, chan) {
            chan.tell_ourselves();
        }
        return Some(QUIET_NS);
    }
    let head = chan.tx_ring().head_while_awake(STRIDE_SHIFT)?;
    if socket.quiet_at.load(Ordering::Relaxed) != head {
        socket.quiet_at.store(head, Ordering::Relaxed);
        socket.quiet_since.store(now_ns, Ordering::Relaxed);
        return Some(QUIET_NS);
    }
    let quiet = now_ns.saturating_sub(socket.quiet_since.load(Ordering::Relaxed));
    if quiet < QUIET_NS {
        return Some(QUIET_NS - quiet);
    }
    let fd = socket.anchor(fd);
    if death_may_hide(fd, chan) && !sever::notice_death(fd, socket, chan) {
        socket.quiet_since.store(now_ns, Ordering::Relaxed);
        return Some(QUIET_NS);
    }
    give_back(socket, chan);
    None
}

/// Whether the peer's end could stay unknown to us. While bytes that we do not read fill TCP's
/// window, the peer's FIN waits behind them, and what it left unread in the ring makes the kernel
/// send no reset. So a sleeper looks once a second.
fn death_may_hide(fd: Fd, chan: &Chan) -> bool {
    chan.tx_ring().pending(STRIDE_SHIFT).is_some_and(|n| n > 0)
        && sys::ioctl_int(fd, libc::FIONREAD).is_ok_and(|n| n > 0)
}

/// Gives all memory of the ring that we write back, if it is empty. The next write gets some.
pub(crate) fn give_back(socket: &Socket, chan: &Chan) {
    if let Some(lock) = chan.lock_tx(socket)
        && !lock.nested
        && chan.tx_ring().sleep(STRIDE_SHIFT)
    {
        chan.tx_bytes().depopulate();
        allowance::take_back(socket);
    }
}

/// Looks at the channels of a set that goes to sleep. For how long at most it may, if there is
/// something to come back for. At most one look a second.
pub(crate) fn nap(set: &'static EpollSet) -> Option<u64> {
    let (now, due) = (clock::monotonic_ns(), set.look_at.load(Ordering::Relaxed));
    if now < due {
        let settled = set.settled.load(Ordering::Relaxed);
        return (!settled).then_some(due - now);
    }
    let rest = look_at_all(set, now);
    set.look_at
        .store(now + rest.unwrap_or(QUIET_NS), Ordering::Relaxed);
    set.settled.store(rest.is_none(), Ordering::Relaxed);
    rest
}

/// A channel of the set has something to report: they may be in use again.
pub(crate) fn stir(set: &EpollSet) {
    if set.settled.load(Ordering::Relaxed) {
        set.settled.store(false, Ordering::Relaxed);
    }
}

/// Looks at every channel of a set; the longest of the times that they want.
fn look_at_all(set: &'static EpollSet, now_ns: u64) -> Option<u64> {
    let _guard = set.lock.lock()?;
    let members = set.segments().iter().flat_map(SetSegment::members);
    members
        .filter_map(|interest| {
            let socket = interest.socket().filter(|s| s.is_bound())?;
            look(interest.anchor(socket), socket, &Chan::of(socket)?, now_ns)
        })
        .max()
}

/// The shorter of a nap and what is left of the application's own time; `None`: for ever.
/// Beside it whether the nap is the shorter.
pub(crate) fn shorter(nap_ns: Option<u64>, left_ns: Option<u64>) -> (Option<u64>, bool) {
    match (nap_ns, left_ns) {
        (Some(nap), Some(left)) => (Some(nap.min(left)), nap < left),
        (Some(nap), None) => (Some(nap), true),
        (None, left) => (left, false),
    }
}
