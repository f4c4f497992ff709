//! Releases the memory of idle channels, from threads that are about to sleep.
//!
//! Such a thread checks the rings that it writes. While one of them may become idle soon, the sleep
//! is cut short, to a second at most, for one more check; then it lasts as long as the application
//! wants. So an idle process wakes once or twice after its last byte, and never again (but see
//! `death_may_hide`). Only the producer releases memory, under its own lock: it alone knows that
//! no byte is being written.

use crate::chan::Chan;
use crate::epoll::{EpollSet, SetSegment};
use crate::sock::Socket;
use crate::{allowance, clock, reset, send};
use core::sync::atomic::Ordering;
use saiga_channel::layout::STRIDE_SHIFT;
use saiga_channel::sys::{self, Fd};

/// A ring is idle when nothing was written to it for this long.
const QUIET_NS: u64 = 1_000_000_000;

/// Checks the ring that we write, and releases its memory if it is idle by now. Otherwise returns
/// the nanoseconds until it may be idle; `None`: it has no memory, or has bytes that stay unread.
/// The caller holds a pin.
pub(crate) fn look(fd: Fd, socket: &'static Socket, chan: &Chan, now_ns: u64) -> Option<u64> {
    if send::awaits_notice(chan) && socket.switch_ordered.load(Ordering::SeqCst) {
        // A thread that waits for room is not woken when the peer leaves a receive that did not see
        // the switch.
        if send::overtake(fd, socket, chan) {
            chan.wake_own_threads();
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
    if death_may_hide(fd, chan) && !reset::notice_peer_death(fd, socket, chan) {
        socket.quiet_since.store(now_ns, Ordering::Relaxed);
        return Some(QUIET_NS);
    }
    give_back(socket, chan);
    None
}

/// Whether the peer's end could stay unknown to us. While bytes that we do not read fill TCP's
/// window, the peer's FIN waits behind them, and bytes that it left unread in the ring do not make
/// the kernel send a reset. So a sleeper checks once a second.
fn death_may_hide(fd: Fd, chan: &Chan) -> bool {
    chan.tx_ring().pending(STRIDE_SHIFT).is_some_and(|n| n > 0)
        && sys::ioctl_int(fd, libc::FIONREAD).is_ok_and(|n| n > 0)
}

/// Releases all memory of the ring that we write, if it is empty. The next write gets new memory.
pub(crate) fn give_back(socket: &Socket, chan: &Chan) {
    if let Some(lock) = chan.lock_tx(socket)
        && !lock.nested
        && chan.tx_ring().sleep(STRIDE_SHIFT)
    {
        chan.tx_bytes().depopulate();
        allowance::take_back(socket);
    }
}

/// Checks the channels of a set whose caller is about to sleep, at most once a second. Returns the
/// longest time that the caller may sleep before another check is needed, if any.
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

/// Records that a channel of the set has an event: channels may be in use again.
pub(crate) fn note_activity(set: &EpollSet) {
    if set.settled.load(Ordering::Relaxed) {
        set.settled.store(false, Ordering::Relaxed);
    }
}

/// Checks every channel of a set; returns the longest of their times.
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

/// The shorter of a nap and the application's remaining time (`None`: for ever), and whether the
/// nap is the shorter.
pub(crate) fn shorter(nap_ns: Option<u64>, left_ns: Option<u64>) -> (Option<u64>, bool) {
    match (nap_ns, left_ns) {
        (Some(nap), Some(left)) => (Some(nap.min(left)), nap < left),
        (Some(nap), None) => (Some(nap), true),
        (None, left) => (left, false),
    }
}
