//! Sets in which several processes wait, because they were made before a fork.
//!
//! The kernel's watch of an anchor is edge-triggered, and an edge wakes one waiter. A
//! level-triggered registration in the kernel reports the end of a stream to every process.

use super::{ANCHOR, EDGE, EXCLUSIVE, EpollSet, Interest, ONESHOT};
use crate::sock::Socket;
use core::sync::atomic::Ordering;
use saiga_channel::sys;

/// The peer's FIN, a hang-up or an error of the anchor.
const END: u32 = (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR).cast_unsigned();
/// How often a process passes on ends of one registration. Each time, the kernel may report it to
/// the same process again before the sleeping ones.
const MOST: u32 = 8;

/// Passes an end of the stream on: this process has taken `seen`, events of an anchor, out of the
/// kernel's set, and other processes that share the connection may sleep in the set.
pub(crate) fn hand_on(set: &EpollSet, interest: &Interest, socket: &Socket, seen: u32) {
    let asked = interest.events.load(Ordering::Relaxed);
    let level = asked & (EDGE | ONESHOT | EXCLUSIVE) == 0;
    let ours = interest.is_bound() && !interest.is_orphan();
    if seen & END == 0 || !level || !ours || !socket.maybe_shared() {
        return;
    }
    let times = interest.handed_on.load(Ordering::Relaxed);
    let Some(epfd) = set.any_number().filter(|_| times < MOST) else {
        return;
    };
    interest.handed_on.store(times + 1, Ordering::Relaxed);
    let fd = interest.anchor(socket);
    let data = core::ptr::from_ref(interest) as u64;
    // Include room to send: this process, or another one, may have asked for that event.
    let events = ANCHOR | libc::EPOLLOUT.cast_unsigned();
    // A failure means that the registration is gone: then no process waits for it.
    if sys::epoll_ctl(epfd, libc::EPOLL_CTL_MOD, fd, events, data).is_ok() {
        interest.for_room.store(true, Ordering::Relaxed);
    }
}
