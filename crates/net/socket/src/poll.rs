//! `poll(2)` and `select(2)` over descriptors of which some are bound.
//!
//! Bound descriptors are checked here. To sleep, the call waits in the kernel's poll for the other
//! descriptors, the anchors and a borrowed bell together.

#![expect(unsafe_code, reason = "waits through libc")]

mod pins;
mod scratch;
mod wait_slots;

#[cfg(test)]
pub(crate) use pins::begin_polling;
pub use pins::{Pins, pin_plain};
pub(crate) use pins::{end_polling, forked, has_pollers};
pub use scratch::with_records;
pub(crate) use scratch::{Mapped, put_back};
pub(crate) use wait_slots::{Claim, give_back_many, give_back_one, leave_many, sockets_of};

use crate::asleep::{Asleep, Held};
use crate::chan::Chan;
use crate::sock::{Pin, Socket};
use crate::table::{self, Entry};
use crate::thread_bells;
use crate::{clock, epoll_wait, idle, kernel, policy, process, readiness};
use core::cell::Cell;
use libc::pollfd;
use saiga_channel::direction::{RxMode, TxMode};
use saiga_channel::sys::{Errno, Fd, Sys};
use scratch::Scratch;
use wait_slots::WaitSlots;

/// Time between two checks of a poll that no peer can wake.
const BRIEF_NS: u64 = 1_000_000;
/// A call with more descriptors than this polls the kernel less often: the kernel checks each one.
const FEW: usize = 16;
/// Longest time that kernel descriptors wait behind busy channels.
const LOOK_US: u64 = 200;

thread_local! {
    /// Time of this thread's last poll of the kernel (ticks), and its number of descriptors.
    static LOOKED: Cell<(u64, usize)> = const { Cell::new((0, 0)) };
}

/// Whether a call must be served here because a descriptor in it is bound. Records for all of its
/// sockets that the hooks have seen a wait.
pub fn concerns(fds: impl IntoIterator<Item = Fd>) -> bool {
    let mut bound = false;
    for fd in fds {
        match table::get(fd) {
            Entry::Socket(s) => {
                s.nonblock.note_wait();
                bound |= s.is_bound();
            }
            Entry::Epoll(set) => epoll_wait::latch(set),
            Entry::Unknown | Entry::Hidden => {}
        }
    }
    bound
}

/// The channel of a descriptor, if it is bound. The caller is inside while it holds the pin.
fn bound(fd: Fd) -> Option<(Pin, &'static Socket, Chan)> {
    let socket = table::socket(fd)?;
    let pin = socket.pin_as(fd)?;
    if !socket.is_bound() {
        return None;
    }
    let chan = Chan::of(socket)?;
    Some((pin, socket, chan))
}

/// Serves `ppoll(2)` with bound descriptors. Fills `revents`; returns the number of ready
/// descriptors. A timeout of `None` is for ever.
///
/// # Errors
/// As `man 2 poll`: EINTR, EINVAL, ENOMEM.
pub fn poll(
    fds: &mut [pollfd],
    timeout_ns: Option<u64>,
    mask: *const libc::sigset_t,
) -> Sys<usize> {
    // With more entries than the limit of descriptors the kernel changes no entry. It has taken as
    // many as this thread passed last.
    let most = || Some(process::descriptor_limit()).filter(|limit| *limit != 0);
    if fds.len() > LOOKED.get().1 && most().is_some_and(|most| fds.len() as u64 > most) {
        return Err(Errno(libc::EINVAL));
    }
    let deadline = timeout_ns.map(|t| clock::monotonic_ns().saturating_add(t));
    let mut scratch = Scratch::new(fds.len())?;
    let mut napped = false;
    loop {
        let ready = look(fds);
        if ready > 0 && !kernel_due(fds) {
            return Ok(ready);
        }
        let left = deadline.map(|d| d.saturating_sub(clock::monotonic_ns()));
        if ready > 0 || left == Some(0) {
            return ask_kernel(fds, scratch.arrays().0, None, Some(0), core::ptr::null());
        }
        if !napped
            && let Some((_pin, _, chan)) = fds.iter().find_map(|p| bound(p.fd))
            && policy::wait_awake(chan.peer_cpu(), Some(chan.segment), || any_event(fds))
        {
            continue;
        }
        let (time, naps) = idle::shorter(nap(fds), left);
        let n = sleep(fds, &mut scratch, time, mask)?;
        if n > 0 {
            return Ok(n);
        }
        napped = naps;
    }
}

/// Fills `revents` of the bound descriptors; returns the number of ready ones.
fn look(fds: &mut [pollfd]) -> usize {
    let mut ready = 0;
    for p in fds {
        p.revents = 0;
        if let Some((_pin, socket, chan)) = bound(p.fd) {
            let wanted = p.events | libc::POLLERR | libc::POLLHUP;
            p.revents = readiness::events(p.fd, socket, &chan) & wanted;
            ready += usize::from(p.revents != 0);
        }
    }
    ready
}

/// Whether the kernel must be polled although channels have events: it may have more. For many
/// descriptors that are all bound the poll can wait a little: it would only find ends.
fn kernel_due(fds: &[pollfd]) -> bool {
    let (looked, took) = LOOKED.get();
    let since = clock::ticks().wrapping_sub(looked);
    let is_bound = |p: &pollfd| table::socket(p.fd).is_some_and(Socket::is_bound);
    fds.len() <= FEW
        || fds.len() > took
        || since > clock::us(LOOK_US)
        || !fds.iter().all(|p| p.fd < 0 || is_bound(p))
}

/// Checks for idle channels. Returns how long the call may sleep before the next check.
fn nap(fds: &[pollfd]) -> Option<u64> {
    let now = clock::monotonic_ns();
    fds.iter()
        .filter_map(|p| {
            let (_pin, socket, chan) = bound(p.fd)?;
            idle::look(p.fd, socket, &chan, now)
        })
        .max()
}

/// Whether shared memory alone shows an event that was asked for. An ended ring shows nothing: TCP
/// decides there, and a thread that waits for TCP must sleep.
fn any_event(fds: &[pollfd]) -> bool {
    fds.iter().any(|p| {
        bound(p.fd).is_some_and(|(_pin, _, chan)| {
            let reads = p.events & (libc::POLLIN | libc::POLLRDNORM) != 0;
            let writes = p.events & (libc::POLLOUT | libc::POLLWRNORM) != 0;
            let (incoming, outgoing) = (chan.rx_ring(), chan.tx_ring());
            let receives = chan.own().rx_mode.peek() == RxMode::Ring;
            let sends = chan.own().tx_mode.peek() == TxMode::Ring;
            (reads && receives && incoming.readable())
                || (writes && sends && !outgoing.frozen() && chan.writable())
        })
    })
}

/// Polls the kernel for everything but the rings, waiting at most `timeout_ns`; then checks the
/// rings again. Records anchors with events. `asked` is one entry longer than `fds`.
fn ask_kernel(
    fds: &mut [pollfd],
    asked: &mut [pollfd],
    bell: Option<Fd>,
    timeout_ns: Option<u64>,
    mask: *const libc::sigset_t,
) -> Sys<usize> {
    for (to, p) in asked.iter_mut().zip(fds.iter()) {
        let events = match bound(p.fd) {
            Some((_pin, _, chan)) => readiness::events_to_watch(&chan, p.events),
            None => p.events,
        };
        *to = pollfd {
            fd: p.fd,
            events,
            revents: 0,
        };
    }
    if let Some(last) = asked.last_mut() {
        *last = pollfd {
            fd: bell.unwrap_or(-1),
            events: libc::POLLIN,
            revents: 0,
        };
    }
    // The application may pass as many entries as the kernel takes (RLIMIT_NOFILE).
    let count = fds.len() + usize::from(bell.is_some());
    // SAFETY: the mask is our caller's, null or valid.
    unsafe { kernel::ppoll(&mut asked[..count], timeout_ns, mask) }?;
    LOOKED.set((clock::ticks(), fds.len()));
    let mut ready = 0;
    for (p, seen) in fds.iter_mut().zip(asked.iter()) {
        p.revents = match bound(p.fd) {
            Some((_pin, socket, chan)) => {
                if seen.revents != 0 {
                    socket.anchor_events.note();
                }
                let wanted = p.events | libc::POLLERR | libc::POLLHUP;
                readiness::events(p.fd, socket, &chan) & wanted
            }
            None => seen.revents,
        };
        ready += usize::from(p.revents != 0);
    }
    Ok(ready)
}

/// Sleeps until a descriptor may be ready. 0: check again (or the time is over).
#[inline(never)] // Its frame lies below the scratch arrays then.
fn sleep(
    fds: &mut [pollfd],
    scratch: &mut Scratch,
    left: Option<u64>,
    mask: *const libc::sigset_t,
) -> Sys<usize> {
    let asleep = Asleep::begin(scratch);
    let memory = scratch.memory();
    let (asked, claimed) = scratch.arrays();
    let at_most = |ns: u64| Some(left.map_or(ns, |l| l.min(ns)));
    let Ok(borrowed) = thread_bells::borrow() else {
        // There is no descriptor for a bell: check again soon instead of sleeping.
        return ask_kernel(fds, asked, None, at_most(BRIEF_NS), mask);
    };
    // Pin plain sockets, or one could be bound during the sleep without waking us.
    let pins = pins::pin_unbound(fds);
    let wait_slots = WaitSlots::new(claimed, fds, &borrowed);
    memory
        .into_iter()
        .for_each(|m| asleep.hold(Held::Memory(m)));
    asleep.hold(borrowed.held());
    pins.note(&asleep);
    wait_slots.note(&asleep, memory.is_some());
    let bell = Some(borrowed.bell().fd);
    let result = if !wait_slots.complete {
        // Not every segment has a free wait slot: check again soon instead of sleeping.
        ask_kernel(fds, asked, bell, at_most(BRIEF_NS), mask)
    } else if !pins.hold_all_plain(fds) || wait_slots.announce_sleep() || look(fds) > 0 {
        ask_kernel(fds, asked, bell, Some(0), mask)
    } else {
        match ask_kernel(fds, asked, bell, left, mask) {
            // No entry is left for the bell: check again soon; other errors come again then.
            Err(Errno(libc::EINVAL)) => ask_kernel(fds, asked, None, at_most(BRIEF_NS), mask),
            answered => answered,
        }
    };
    if !asleep.end() {
        wait_slots.disown();
        scratch.disown();
        core::mem::forget((borrowed, pins));
        return Err(Errno(libc::EINTR));
    }
    let is_our_bell = wait_slots.are_ours();
    drop(wait_slots);
    let _ = is_our_bell && borrowed.bell().drain();
    result
}
