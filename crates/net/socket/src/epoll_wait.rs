//! `epoll_wait(2)` on a set with bound connections.
//!
//! Events arrive as bits in the set's wait slots; they move registrations to the ready list, where
//! each is examined until it has nothing to report. The kernel's set is polled when nothing is
//! ready here, and every 200 µs when something is, so that kernel descriptors do not starve; idle
//! segments likewise (`epoll/hot.rs`). A thread always sleeps in the kernel's set.

#![expect(
    unsafe_code,
    reason = "fills the caller's event array; waits through libc"
)]

mod examine;

use self::examine::{Overdue, examine};
use crate::asleep::{Asleep, Held};
use crate::epoll::{self, BELL_DATA, EpollSet, SetSegment};
use crate::links::Link;
use crate::lock::{self, Guard};
use crate::policy::wake_cost;
use crate::{clock, idle, policy, rt};
use core::sync::atomic::Ordering;
use saiga_channel::crowd::Ticket;
use saiga_channel::layout::SlotIndex;
use saiga_channel::sys::{Errno, Fd, Sys};
use saiga_channel::wait_slot::WaitSlot;

/// Longest time that kernel descriptors wait behind busy channels.
const LOOK_US: u64 = 200;

/// A wait in the kernel's set of a descriptor: where to store events, how many fit, timeout in
/// nanoseconds (`None`: for ever). Returns the number of events.
pub type KernelWait<'a> = &'a dyn Fn(Fd, *mut libc::epoll_event, usize, Option<u64>) -> Sys<usize>;

/// The parameters of one call.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) set: &'static EpollSet,
    /// The descriptor that the application has passed.
    pub(crate) epfd: Fd,
    pub(crate) events: *mut libc::epoll_event,
    pub(crate) room: usize,
    pub(crate) timeout_ns: Option<u64>,
    pub(crate) kernel: KernelWait<'a>,
}

impl Call<'_> {
    /// Stores one event; `at < room`.
    fn put(&self, at: usize, events: u32, data: u64) {
        let event = libc::epoll_event { events, u64: data };
        // SAFETY: the caller of epoll_wait promised `room` events at `events`, and `at` is less.
        let event_at = unsafe { self.events.add(at) };
        // SAFETY: as above; the structure is packed on x86-64.
        unsafe { event_at.write_unaligned(event) };
    }

    /// Waits in the kernel on whatever the application's number refers to.
    fn kernel_at_number(&self) -> Sys<usize> {
        (self.kernel)(self.epfd, self.events, self.room, self.timeout_ns)
    }

    /// Waits in the kernel's set. Once the application has closed the set, its number may refer to
    /// another file: a thread that is inside goes on with our copy.
    fn kernel(&self, timeout_ns: Option<u64>) -> Sys<usize> {
        let wait = |fd| (self.kernel)(fd, self.events, self.room, timeout_ns);
        match self.set.own_copy() {
            Some(copy) => wait(copy),
            None => match (wait(self.epfd), self.set.own_copy()) {
                (Err(Errno(libc::EBADF)), Some(copy)) => wait(copy), // Just closed.
                (result, _) => result,
            },
        }
    }

    /// Moves the events from `middle` to `end` before those from `start` to `middle`.
    fn exchange(&self, start: usize, middle: usize, end: usize) {
        if start < middle && middle < end {
            for (from, to) in [(start, middle), (middle, end), (start, end)] {
                self.reverse(from, to);
            }
        }
    }

    fn reverse(&self, mut from: usize, mut to: usize) {
        while to > from + 1 {
            to -= 1;
            let (one, two) = (self.get(from), self.get(to));
            self.put(from, two.events, two.u64);
            self.put(to, one.events, one.u64);
            from += 1;
        }
    }

    /// Reads an event that the kernel stored; `at < room`.
    fn get(&self, at: usize) -> libc::epoll_event {
        // SAFETY: the kernel has filled this entry.
        let event_at = unsafe { self.events.add(at) };
        // SAFETY: as above.
        unsafe { event_at.read_unaligned() }
    }
}

/// Waits for events; returns the number of stored events.
///
/// # Errors
/// As `man 2 epoll_wait`: EINTR, EFAULT, ...
pub(crate) fn wait(call: &Call<'_>) -> Sys<usize> {
    call.set.note_wait();
    if call.set.outer.load(Ordering::Relaxed) {
        refresh_latched();
    }
    let deadline = call
        .timeout_ns
        .map(|t| clock::monotonic_ns().saturating_add(t));
    let entered = if call.set.bell().is_some() {
        enter(call)
    } else {
        match plain(call)? {
            Plain::Over(n) => return Ok(n),
            Plain::Bell(ticket) => Some(ticket),
        }
    };
    let Some(ticket) = entered else {
        return call.kernel_at_number(); // Just closed.
    };
    let result = emulate(call, deadline);
    leave(call.set, ticket);
    result
}

/// Outcome of a wait in a set without bound connections.
enum Plain {
    /// The call returns this many events.
    Over(usize),
    /// The set has a bell by now, which alone woke the caller: the caller counts as a waiter.
    Bell(Ticket),
}

/// Waits in the kernel's set, for a set without bound connections.
///
/// The caller counts as a sleeper all the time. A thread that binds a connection of the set first
/// makes the bell and then checks for sleepers, so either we see the bell or it rings for us.
#[inline(never)] // Its frame lies below the call's then.
fn plain(call: &Call<'_>) -> Sys<Plain> {
    let set = call.set;
    let ticket = set.sleepers.join(lock::epoch());
    let asleep = Asleep::begin(call);
    asleep.hold(Held::Sleeper(set, ticket.epoch()));
    let open = set.is_at(call.epfd);
    let slept = match open && set.bell().is_some() {
        true => Ok(0),
        false if open => call.kernel(call.timeout_ns),
        false => call.kernel_at_number(),
    };
    if !asleep.end() {
        let _ = set.sleepers.join(lock::epoch()); // Left again below.
    }
    if !open || set.bell().is_none() {
        set.sleepers.part(ticket, lock::epoch());
        epoll::left(set);
        return slept.map(Plain::Over);
    }
    let inside = join(set);
    set.sleepers.part(ticket, lock::epoch());
    match slept.map(|n| sift(call, n).kept) {
        Ok(0) => Ok(Plain::Bell(inside)),
        result => {
            leave(set, inside); // The bell may have been for other sleepers of this set.
            result.map(Plain::Over)
        }
    }
}

/// Counts the caller as a waiter.
fn join(set: &'static EpollSet) -> Ticket {
    let _guard = set.lock.lock();
    set.sweep();
    set.waiters.join(lock::epoch())
}

/// As [`join`], unless the application has closed the set.
fn enter(call: &Call<'_>) -> Option<Ticket> {
    let ticket = join(call.set);
    let open = call.set.is_at(call.epfd);
    if !open {
        leave(call.set, ticket);
    }
    open.then_some(ticket)
}

fn leave(set: &'static EpollSet, ticket: Ticket) {
    let over = set.lock.lock().is_some_and(|guard| {
        set.waiters.part(ticket, lock::epoch());
        hand_over(set, &guard);
        set.is_over()
    });
    if over {
        set.end();
    }
}

/// Wakes others before the caller leaves a set with events: sleepers in it, or pollers of it.
fn hand_over(set: &'static EpollSet, _guard: &Guard<'_>) {
    let ready = !set.first_ready.load(Ordering::Relaxed).is_null();
    let bell = set
        .sleepers
        .hand_over(lock::epoch(), || announce_sleep(set) || ready);
    if let Some(bell) = bell {
        rt::ring(bell);
    }
}

fn emulate(call: &Call<'_>, deadline: Option<u64>) -> Sys<usize> {
    let set = call.set;
    loop {
        let due = kernel_due(set);
        let mut served = serve(call, due, false)?;
        if due {
            set.hot.turn(set.segments().len());
        }
        let over = served.events == 0 && left_of(deadline) == Some(0);
        if over && !served.asked {
            // A caller that waits on polls the kernel's descriptors when it goes to sleep.
            served = serve(call, true, true)?;
        }
        if served.look_again {
            continue;
        }
        if served.events > 0 || over {
            return Ok(served.events);
        }
        let link = set.segments().iter().find_map(SetSegment::link);
        let peer_cpu = set.peer_cpu.load(Ordering::Relaxed);
        if policy::wait_awake(peer_cpu, link.and_then(Link::segment), || has_events(set)) {
            continue;
        }
        if let Some(n) = sleep(call, deadline)? {
            return Ok(n);
        }
    }
}

/// Nanoseconds until a deadline (CLOCK_MONOTONIC, ns); `None`: for ever.
fn left_of(deadline: Option<u64>) -> Option<u64> {
    deadline.map(|d| d.saturating_sub(clock::monotonic_ns()))
}

/// Whether it is time to poll the kernel although channels are busy.
fn kernel_due(set: &EpollSet) -> bool {
    let now = clock::ticks();
    now.wrapping_sub(set.looked.load(Ordering::Relaxed)) > clock::us(LOOK_US)
}

/// Outcome of one check of the channels and the kernel.
struct Served {
    events: usize,
    /// Whether the kernel was polled.
    asked: bool,
    /// There were no events, and there may be some now.
    look_again: bool,
}

/// Stores the events that there are. The kernel is polled if `must`, when it is `due` and has its
/// turn, and when a channel with events says that its peer used TCP before. It is polled after the
/// check of the channels, so that it knows what came before their events.
fn serve(call: &Call<'_>, due: bool, must: bool) -> Sys<Served> {
    let set = call.set;
    let mut guard = set.lock.lock();
    if guard.is_some() {
        absorb(set, due);
    }
    let after_tcp = set.must_poll_kernel();
    let has_turn = || call.room > 1 || set.kernel_first.swap(false, Ordering::Relaxed);
    let ask = must || after_tcp || (due && has_turn());
    let mut from_kernel = Sifted::default();
    if ask {
        drop(guard);
        let now = clock::ticks();
        set.looked.store(now, Ordering::Relaxed);
        let n = call.kernel(Some(0))?;
        from_kernel = sift(call, n);
        if !after_tcp {
            from_kernel.before = 0; // The peers' uses of TCP are earlier than the kernel's events.
        }
        guard = set.lock.lock();
        set.note_kernel_polled(now);
    }
    let mut overdue = None;
    let events = guard.map_or(from_kernel.kept, |guard| {
        collect(call, from_kernel, &mut overdue, &guard)
    });
    if due && !ask && events > 0 {
        set.kernel_first.store(true, Ordering::Relaxed);
    }
    let overtaken = overdue.is_some_and(Overdue::overtake);
    Ok(Served {
        events,
        asked: ask,
        look_again: overtaken && events == 0,
    })
}

/// Sleeps in the kernel's set. `Some(n)`: return `n` events; `None`: check again.
#[inline(never)] // Its frame lies below the call's then.
fn sleep(call: &Call<'_>, deadline: Option<u64>) -> Sys<Option<usize>> {
    let set = call.set;
    let nap = idle::nap(set);
    let ticket = set.sleepers.join(lock::epoch());
    let asleep = Asleep::begin(call);
    asleep.hold(Held::Waiter(set, ticket.epoch())); // The caller of this function counts as one.
    asleep.hold(Held::Sleeper(set, ticket.epoch()));
    let now = clock::ticks();
    let slept = if announce_sleep(set) || has_ready(set, ticket) {
        Ok(None)
    } else {
        rest(call, nap, deadline).map(Some)
    };
    if !asleep.end() {
        let _ = (
            set.waiters.join(lock::epoch()),
            set.sleepers.join(lock::epoch()),
        ); // Left again below.
    }
    end_sleep(set, ticket);
    set.looked.store(clock::ticks(), Ordering::Relaxed);
    match slept? {
        None => Ok(None),
        Some(0) => serve(call, true, false).map(|s| (!s.look_again).then_some(s.events)),
        Some(n) => Ok(woken(call, n, now)),
    }
}

/// Handles a sleep that began at `since` and that the kernel ended with `n` events. Returns the
/// number of events to return; `None` if all of them were the library's own.
fn woken(call: &Call<'_>, n: usize, since: u64) -> Option<usize> {
    let from_kernel = sift(call, n);
    let (kept, mut overdue) = (from_kernel.kept, None);
    let all = call.set.lock.lock().map_or(kept, |guard| {
        absorb(call.set, true);
        call.set.note_kernel_polled(since);
        if call.set.must_poll_kernel() {
            return kept; // The channels wait for the next poll of the kernel.
        }
        collect(call, from_kernel, &mut overdue, &guard)
    });
    if let Some(overdue) = overdue {
        overdue.overtake();
    }
    (all > 0).then_some(all)
}

fn end_sleep(set: &'static EpollSet, ticket: Ticket) {
    set.sleepers.part(ticket, lock::epoch());
    for wait_slot in set.segments().iter().filter_map(SetSegment::wait_slot) {
        wake_cost::end_sleep(wait_slot);
    }
}

/// Ends the sleep of an abandoned frame.
pub(crate) fn give_back_sleeper(set: &'static EpollSet, epoch: u32) {
    end_sleep(set, Ticket::of(epoch));
    epoll::left(set);
}

/// Ends the wait of an abandoned frame.
pub(crate) fn give_back_waiter(set: &'static EpollSet, epoch: u32) {
    leave(set, Ticket::of(epoch));
}

/// Whether the ready list has an entry, for a caller that has joined the sleepers (`sleepers.rs`).
/// In a signal handler above the lock's holder there is no lock to take and none needed: the list
/// can change only after the handler, or has changed on this thread.
fn has_ready(set: &EpollSet, _asleep: Ticket) -> bool {
    let _guard = set.lock.lock();
    !set.first_ready.load(Ordering::Relaxed).is_null()
}

/// Waits in the kernel's set until the deadline, beginning with a nap. A peer with an event rings
/// the bell, which stays readable in the kernel's set from one wait to the next.
fn rest(call: &Call<'_>, mut nap: Option<u64>, deadline: Option<u64>) -> Sys<usize> {
    loop {
        let (time, naps) = idle::shorter(nap, left_of(deadline));
        let n = call.kernel(time)?;
        if n > 0 || !naps {
            return Ok(n);
        }
        nap = idle::nap(call.set);
    }
}

/// Publishes in every segment that we sleep; true when there is an event already.
fn announce_sleep(set: &EpollSet) -> bool {
    let mut has_event = false;
    for wait_slot in set.segments().iter().filter_map(SetSegment::wait_slot) {
        has_event |= wait_slot.sleep();
    }
    has_event
}

fn has_events(set: &EpollSet) -> bool {
    let mut wait_slots = set.segments().iter().filter_map(SetSegment::wait_slot);
    wait_slots.any(WaitSlot::has_events)
}

/// Counts of the kernel's events that [`sift`] has kept for the application.
#[derive(Debug, Clone, Copy, Default)]
struct Sifted {
    /// Events of the application's registrations.
    kept: usize,
    /// Those among them that came before the events of channels.
    before: usize,
}

/// Separates `n` events that the kernel stored: keeps the application's, removes ours. The kernel
/// reports in the order in which files became ready, the bell among them.
fn sift(call: &Call<'_>, n: usize) -> Sifted {
    let (mut kept, mut bell_at) = (0, None);
    for at in 0..n {
        let event = call.get(at);
        let data = event.u64;
        if data == BELL_DATA {
            let _ = call.set.bell().is_some_and(|bell| bell.drain());
            bell_at = Some(kept);
        } else if let Some(interest) = epoll::by_data(data) {
            if let Some(socket) = interest.socket() {
                socket.anchor_events.note();
            }
            // The record may belong to another connection by now, in another set.
            if let Some(_guard) = call.set.lock.lock()
                && interest.is_in(call.set)
            {
                call.set.queue(interest);
                if let Some(socket) = interest.socket() {
                    epoll::hand_on(call.set, interest, socket, event.events);
                }
            }
        } else {
            call.put(kept, event.events, data);
            kept += 1;
        }
    }
    let before = bell_at.unwrap_or(kept);
    Sifted { kept, before }
}

/// Stores events of bound connections of the ready list beside those of the kernel; returns the
/// total number.
fn collect(
    call: &Call<'_>,
    from_kernel: Sifted,
    overdue: &mut Option<Overdue>,
    _guard: &Guard<'_>,
) -> usize {
    let Sifted { kept, before } = from_kernel;
    let (mut n, last) = (kept, call.set.last_ready.load(Ordering::Relaxed));
    while n < call.room {
        let Some(interest) = call.set.unqueue() else {
            break;
        };
        let was_last = core::ptr::eq(interest, last);
        if let Some(events) = examine(call.set, interest, overdue) {
            call.put(n, events, interest.data.load(Ordering::Relaxed));
            n += 1;
        }
        if was_last {
            break;
        }
    }
    if n > kept {
        idle::note_activity(call.set);
        call.exchange(before, kept, n);
    }
    n
}

/// Moves the registrations of channels with events to the ready list, in the order of the events.
/// Unless `everywhere`, idle segments are checked only if no other has events. The caller holds the
/// set's lock.
fn absorb(set: &'static EpollSet, everywhere: bool) {
    let (used, last) = (set.segments().len(), set.last_ready.load(Ordering::Relaxed));
    let mut slots = 0;
    if !everywhere {
        slots = set.hot.indices(used).map(|i| absorb_one(set, i)).sum();
    }
    if slots == 0 {
        slots = (0..used).map(|index| absorb_one(set, index)).sum();
    }
    if slots > 1 {
        set.sort_behind(last);
    }
}

/// As [`absorb`], for one segment; returns the number of channels with events.
fn absorb_one(set: &'static EpollSet, index: usize) -> u32 {
    let segment = &set.segments()[index];
    let mut bits = segment.wait_slot().map_or(0, WaitSlot::take);
    let slots = bits.count_ones();
    if slots > 0 {
        set.hot.note(index);
        set.note_peer_tcp(segment);
    }
    while bits != 0 {
        let slot = SlotIndex::stored(bits.trailing_zeros());
        bits &= bits - 1;
        for interest in segment.interests(slot) {
            set.queue(interest);
        }
    }
    slots
}

/// Whether the set has something to report now; for pollers of the set itself.
pub(crate) fn ready_now(set: &'static EpollSet) -> bool {
    let mut overdue = None;
    let ready = is_ready(set, &mut overdue);
    if let Some(overdue) = overdue {
        overdue.overtake();
    }
    ready
}

fn is_ready(set: &'static EpollSet, overdue: &mut Option<Overdue>) -> bool {
    let Some(_guard) = set.lock.lock() else {
        return false;
    };
    absorb(set, true);
    let last = set.last_ready.load(Ordering::Relaxed);
    while let Some(interest) = set.unqueue() {
        let was_last = core::ptr::eq(interest, last);
        let spent = interest.spent.load(Ordering::Relaxed);
        if examine(set, interest, overdue).is_some() {
            interest.spent.store(spent, Ordering::Relaxed);
            set.queue(interest);
            return true;
        }
        if was_last {
            break;
        }
    }
    false
}

/// Makes the bell ring from now on whenever the set has something to report: the set is polled.
pub(crate) fn latch(set: &'static EpollSet) {
    epoll::note_latched(set);
    refresh(set);
}

/// Makes the bells of all polled sets agree with their sets' state, before something polls them.
pub(crate) fn refresh_latched() {
    for set in epoll::latched() {
        refresh(set);
    }
}

fn refresh(set: &'static EpollSet) {
    let Some(bell) = set.bell() else { return };
    bell.drain_all();
    let ready = ready_now(set);
    if let Some(guard) = set.lock.lock()
        && (announce_sleep(set) || ready)
    {
        set.wake_others(&guard);
    }
}
