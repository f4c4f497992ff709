//! `poll(2)` and `select(2)` over descriptors of which some are bound.
//!
//! Bound ones are looked at here; the rest, the anchors and a borrowed bell sleep
//! together in the kernel's poll.

#![expect(
    unsafe_code,
    reason = "waits through libc; a mapped array for large sets"
)]

use crate::chan::Chan;
use crate::places::{self, Borrowed};
use crate::sock::{Pin, Socket};
use crate::table::{self, Entry};
use crate::{clock, epoll_wait, idle, kernel, policy, readiness, rt, wakeups};
use core::sync::atomic::{AtomicU32, Ordering};
use libc::pollfd;
use saiga_channel::segment::Segment;
use saiga_channel::sys::{self, Errno, Fd, Sys};

/// Descriptors that a call can have without a mapping of its own.
const SMALL: usize = 64;

/// Time between two looks of a poll that nobody can wake.
const BRIEF_NS: u64 = 1_000_000;

/// An array of `pollfd` for the kernel, on the stack when small.
struct Scratch {
    small: [pollfd; SMALL],
    mapped: *mut pollfd,
    len: usize,
}

impl Scratch {
    fn new(len: usize) -> Sys<Scratch> {
        let none = pollfd {
            fd: -1,
            events: 0,
            revents: 0,
        };
        let mut mapped = core::ptr::null_mut();
        if len > SMALL {
            mapped = sys::map(-1, len * size_of::<pollfd>())?.cast();
        }
        Ok(Scratch {
            small: [none; SMALL],
            mapped,
            len,
        })
    }

    fn slice(&mut self) -> &mut [pollfd] {
        if self.mapped.is_null() {
            return &mut self.small[..self.len];
        }
        // SAFETY: mapped for `len` records, zeroed, ours alone.
        unsafe { core::slice::from_raw_parts_mut(self.mapped, self.len) }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.mapped.is_null() {
            // SAFETY: mapped in `new`; no slice of it is left.
            unsafe { sys::unmap(self.mapped.cast(), self.len * size_of::<pollfd>()) };
        }
    }
}

/// Whether a call must be served here, because some descriptor in it is bound.
pub fn concerns(fds: impl IntoIterator<Item = Fd>) -> bool {
    let mut bound = false;
    for fd in fds {
        match table::get(fd) {
            Entry::Socket(s) => bound |= s.is_bound(),
            Entry::Epoll(set) => epoll_wait::latch(set),
            Entry::Unknown | Entry::Hidden => {}
        }
    }
    bound
}

/// Threads in a kernel poll over sockets that are not pinned one by one.
static POLLERS: AtomicU32 = AtomicU32::new(0);

/// Whether some thread sits in a kernel poll that may hold any socket: nothing is bound then,
/// for that thread could not be told.
pub(crate) fn somebody_polls() -> bool {
    POLLERS.load(Ordering::SeqCst) > 0
}

/// Counts the caller among the pollers until dropped.
#[derive(Debug)]
pub struct Polling(());

impl Polling {
    fn begin() -> Polling {
        POLLERS.fetch_add(1, Ordering::SeqCst);
        Polling(())
    }
}

impl Drop for Polling {
    fn drop(&mut self) {
        POLLERS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Forgets the pollers of other threads in a forked child.
pub(crate) fn forked() {
    if somebody_polls() {
        POLLERS.store(0, Ordering::SeqCst);
    }
}

/// Callers inside plain sockets while the kernel polls them: they cannot be bound then, and
/// all others can.
#[derive(Debug)]
pub struct Pins {
    few: [Option<Pin>; SMALL],
    many: Option<Polling>,
    len: usize,
}

impl Pins {
    fn new() -> Pins {
        Pins {
            few: [const { None }; SMALL],
            many: None,
            len: 0,
        }
    }

    /// Enters a socket; false, without having entered, when it is bound by now.
    fn add(&mut self, socket: &'static Socket) -> bool {
        let pin = socket.pin();
        if let Some(place) = self.few.get_mut(self.len) {
            *place = Some(pin);
        } else if self.many.is_none() {
            self.many = Some(Polling::begin());
        }
        if socket.is_bound() {
            if let Some(place) = self.few.get_mut(self.len) {
                *place = None;
            }
            return false;
        }
        self.len += 1;
        true
    }
}

/// Enters the plain sockets of a kernel poll. `None`: one is bound by now, serve it here.
pub fn pin_plain(fds: impl IntoIterator<Item = Fd>) -> Option<Pins> {
    let mut pins = Pins::new();
    let mut sockets = fds.into_iter().filter_map(table::socket);
    sockets.all(|socket| pins.add(socket)).then_some(pins)
}

/// Enters the plain ones of several sockets.
fn pin_unbound(fds: &[pollfd]) -> Pins {
    let mut pins = Pins::new();
    for socket in fds.iter().filter_map(|p| table::socket(p.fd)) {
        pins.add(socket);
    }
    pins
}

/// The channel of a descriptor, if it is bound; the caller is inside while it has the pin.
fn bound(fd: Fd) -> Option<(Pin, &'static Socket, Chan)> {
    let socket = table::socket(fd)?;
    let pin = socket.pin();
    if !socket.is_bound() {
        return None;
    }
    let chan = Chan::of(socket)?;
    Some((pin, socket, chan))
}

/// `ppoll(2)` with bound descriptors. Fills `revents`; returns the number of ready ones.
/// A time-out of `None` is for ever.
///
/// # Errors
/// As `man 2 poll`: EINTR, ENOMEM.
pub fn poll(
    fds: &mut [pollfd],
    timeout_ns: Option<u64>,
    mask: *const libc::sigset_t,
) -> Sys<usize> {
    let deadline = timeout_ns.map(|t| clock::monotonic_ns().saturating_add(t));
    let mut scratch = Scratch::new(fds.len() + 1)?;
    let mut napped = false;
    loop {
        if look(fds) > 0 {
            return ask_kernel(fds, &mut scratch, None, Some(0), core::ptr::null());
        }
        let left = deadline.map(|d| d.saturating_sub(clock::monotonic_ns()));
        if left == Some(0) {
            return ask_kernel(fds, &mut scratch, None, Some(0), core::ptr::null());
        }
        if !napped
            && let Some((_pin, _, chan)) = fds.iter().find_map(|p| bound(p.fd))
            && policy::linger(chan.peer_cpu(), Some(chan.segment), || any_news(fds))
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

/// Fills `revents` of the bound descriptors; returns how many are ready.
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

/// Looks for idle channels; for how long at most the call may sleep before it does so again.
fn nap(fds: &[pollfd]) -> Option<u64> {
    let now = clock::monotonic_ns();
    let bound = fds.iter().filter_map(|p| bound(p.fd));
    bound
        .filter_map(|(_pin, socket, chan)| idle::look(socket, &chan, now))
        .max()
}

/// Whether shared memory alone shows something that was asked for.
fn any_news(fds: &[pollfd]) -> bool {
    fds.iter().any(|p| {
        bound(p.fd).is_some_and(|(_pin, _, chan)| {
            let reads = p.events & (libc::POLLIN | libc::POLLRDNORM) != 0;
            let writes = p.events & (libc::POLLOUT | libc::POLLWRNORM) != 0;
            (reads && chan.rx_ring().readable())
                || (writes && chan.tx_ring().writable(rt::max_shift()))
        })
    })
}

/// Asks the kernel about everything but the rings, waiting at most `timeout_ns`; then looks at
/// the rings again. Anchors that have news are remembered.
fn ask_kernel(
    fds: &mut [pollfd],
    scratch: &mut Scratch,
    bell: Option<Fd>,
    timeout_ns: Option<u64>,
    mask: *const libc::sigset_t,
) -> Sys<usize> {
    let asked = scratch.slice();
    for (to, p) in asked.iter_mut().zip(fds.iter()) {
        let events = match bound(p.fd) {
            Some((_pin, _, chan)) => readiness::anchor_events(&chan, p.events),
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
    // The application's entries may be as many as the kernel takes (RLIMIT_NOFILE).
    let count = fds.len() + usize::from(bell.is_some());
    // SAFETY: the mask is our caller's, null or valid.
    unsafe { kernel::ppoll(&mut asked[..count], timeout_ns, mask) }?;
    let mut ready = 0;
    for (p, seen) in fds.iter_mut().zip(asked.iter()) {
        p.revents = match bound(p.fd) {
            Some((_pin, socket, chan)) => {
                if seen.revents != 0 {
                    socket.anchor_news.store(true, Ordering::Relaxed);
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

/// Sleeps until something may be ready. 0: look again (or the time is over).
fn sleep(
    fds: &mut [pollfd],
    scratch: &mut Scratch,
    left: Option<u64>,
    mask: *const libc::sigset_t,
) -> Sys<usize> {
    let Ok(place) = places::borrow() else {
        // No descriptor for a bell: look again soon instead of sleeping.
        let brief = left.map_or(BRIEF_NS, |l| l.min(BRIEF_NS));
        return ask_kernel(fds, scratch, None, Some(brief), mask);
    };
    // A plain socket among them could be bound meanwhile, and we would not hear of it.
    let pins = pin_unbound(fds);
    let claims = Claims::new(fds, &place);
    let plain = |p: &&pollfd| table::socket(p.fd).is_some_and(|s| !s.is_bound());
    let all_pinned = fds.iter().filter(plain).count() == pins.len;
    let quiet = claims.complete && all_pinned && !claims.news(fds);
    let result = if quiet {
        match ask_kernel(fds, scratch, Some(place.bell.fd), left, mask) {
            Err(Errno(libc::EINVAL)) => {
                // No entry is left for a bell: look again soon, or hear what else is wrong.
                let brief = left.map_or(BRIEF_NS, |l| l.min(BRIEF_NS));
                ask_kernel(fds, scratch, None, Some(brief), mask)
            }
            asked => asked,
        }
    } else {
        // There is news, or not every segment has a waiting place for us: look again soon
        // instead of sleeping.
        let brief = if claims.complete { 0 } else { BRIEF_NS };
        let brief = left.map_or(brief, |l| l.min(brief));
        ask_kernel(fds, scratch, Some(place.bell.fd), Some(brief), mask)
    };
    claims.release(fds);
    let _ = place.bell.drain();
    result
}

/// The waiting places that one sleeping poll has in the segments of its channels.
struct Claims {
    held: [Option<(&'static Segment, usize)>; SMALL],
    complete: bool,
}

impl Claims {
    fn new(fds: &[pollfd], place: &Borrowed) -> Claims {
        let mut claims = Claims {
            held: [const { None }; SMALL],
            complete: true,
        };
        for p in fds {
            let Some((_pin, _, chan)) = bound(p.fd) else {
                continue;
            };
            let Some(index) = claims.place_in(chan.segment, place) else {
                claims.complete = false;
                continue;
            };
            chan.ours().rx_places.fetch_or(1 << index, Ordering::SeqCst);
            chan.ours().tx_places.fetch_or(1 << index, Ordering::SeqCst);
            readiness::arm(&chan, p.events);
        }
        claims
    }

    fn place_in(&mut self, segment: &'static Segment, place: &Borrowed) -> Option<usize> {
        let same = |held: &&(&'static Segment, usize)| core::ptr::eq(held.0, segment);
        if let Some((_, index)) = self.held.iter().flatten().find(same) {
            return Some(*index);
        }
        let free = self.held.iter_mut().find(|h| h.is_none())?;
        let index = segment.claim_place(place.bell.name)?;
        *free = Some((segment, index));
        Some(index)
    }

    /// Announces sleep everywhere; true when something is there already.
    fn news(&self, fds: &mut [pollfd]) -> bool {
        let mut news = false;
        for (segment, index) in self.held.iter().flatten() {
            news |= segment.place(segment.side, *index).sleep();
        }
        news || look(fds) > 0
    }

    fn release(self, fds: &[pollfd]) {
        for p in fds {
            let Some((_pin, _, chan)) = bound(p.fd) else {
                continue;
            };
            let mine = self
                .held
                .iter()
                .flatten()
                .find(|h| core::ptr::eq(h.0, chan.segment));
            if let Some((_, index)) = mine {
                chan.ours()
                    .rx_places
                    .fetch_and(!(1 << index), Ordering::SeqCst);
                chan.ours()
                    .tx_places
                    .fetch_and(!(1 << index), Ordering::SeqCst);
            }
        }
        for (segment, index) in self.held.iter().flatten() {
            wakeups::end_sleep(segment.place(segment.side, *index));
            segment.release_place(*index);
        }
    }
}
