//! Epoll sets: the registrations of connections, and how a registration moves between the kernel
//! and the library.
//!
//! A plain socket is registered in the kernel as the application asked, and the library keeps a
//! record. When the socket is bound, its kernel registration becomes an edge-triggered watch of the
//! anchor whose event data is the record's address, and the set gets a bell.

#![expect(unsafe_code, reason = "lists of pool records")]

mod closing;
mod hot;
mod kernel_view;
mod order;
mod registration;
mod shared;

pub(crate) use closing::{close, close_stale, left};
pub(crate) use registration::{
    arm, bind_all, control, forget, is_locked_below, is_waited_for, look_again, orphan, unbind_all,
    wanted, watch_edges_for_room, watch_for_room,
};
pub(crate) use shared::hand_on;

use self::hot::Hot;
use crate::links::{self, Link};
use crate::lock::{self, Lock};
use crate::pool::{Pool, Record};
use crate::reserve::Reserve;
use crate::sock::Socket;
use crate::{rt, table};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};
use saiga_channel::bell::Bell;
use saiga_channel::crowd::Crowd;
use saiga_channel::layout::{SLOTS, SlotIndex};
use saiga_channel::sleepers::Sleepers;
use saiga_channel::sys::{self, Errno, Fd, Sys};

/// Epoll registrations that one process can have recorded.
const INTERESTS: usize = 1 << 19;
/// Epoll sets of one process.
const SETS: usize = 1 << 16;
/// Segments whose channels one set can hold.
const SEGMENTS: usize = 4096;

static POOL: Pool<Interest, INTERESTS> = Pool::new();
static SET_POOL: Pool<EpollSet, SETS> = Pool::new();

/// Events of the kernel's watch of an anchor: input, once per change. Room to send is watched only
/// while TCP is full: an idle anchor must not make its set look ready.
const ANCHOR: u32 = (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLPRI) as u32 | EDGE;
pub(crate) const EDGE: u32 = 1 << 31;
pub(crate) const ONESHOT: u32 = 1 << 30;
const EXCLUSIVE: u32 = 1 << 28;
/// Flags allowed beside EPOLLEXCLUSIVE (`fs/eventpoll.c`, EPOLLEXCLUSIVE_OK_BITS).
const EXCLUSIVE_MAY: u32 =
    (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLERR | libc::EPOLLHUP | libc::EPOLLWAKEUP) as u32
        | EDGE
        | EXCLUSIVE;
/// Event data of the bell: no application can have an object at this address.
pub(crate) const BELL_DATA: u64 = u64::MAX - 0x5a16a;
const NO_SEGMENT: u32 = u32::MAX;

/// One registration of a connection's descriptor in a set.
#[derive(Debug)]
pub(crate) struct Interest {
    set: AtomicPtr<EpollSet>,
    /// Generation of the set when this was registered.
    generation: AtomicU32,
    pub(crate) socket: AtomicPtr<Socket>,
    pub(crate) fd: AtomicI32,
    /// Events that the application asked for.
    pub(crate) events: AtomicU32,
    pub(crate) data: AtomicU64,
    /// Registered by the application. An inactive bound registration stays in the kernel.
    pub(crate) active: AtomicBool,
    orphan: AtomicBool,
    /// The socket is not bound, but the kernel's registration still is the watch of the anchor: it
    /// could not be made the application's again. The library reports its events.
    pub(crate) kept: AtomicBool,
    /// One-shot and fired.
    pub(crate) spent: AtomicBool,
    /// Spent, and removed from the kernel's set, which would otherwise go on to report HUP and ERR.
    parked: AtomicBool,
    /// The kernel's watch of the anchor includes room to send.
    for_room: AtomicBool,
    /// In the set's ready list.
    pub(crate) queued: AtomicBool,
    /// How often this process has passed an end of the stream on to processes that share the set.
    handed_on: AtomicU32,
    /// Index of the set's segment while bound.
    segment: AtomicU32,
    slot: AtomicU32,
    next_of_socket: AtomicPtr<Interest>,
    /// Another registration of the same channel in the same set, by another descriptor.
    twin: AtomicPtr<Interest>,
    pub(crate) next_ready: AtomicPtr<Interest>,
    /// When the peer last woke us for the channel, for sorting (ticks).
    wakeup_at: AtomicU64,
    next_free: AtomicPtr<Interest>,
}

impl Record for Interest {
    fn next_free(&self) -> &AtomicPtr<Self> {
        &self.next_free
    }
}

impl Interest {
    pub(crate) fn socket(&self) -> Option<&'static Socket> {
        // SAFETY: sockets are pool records, never unmapped.
        unsafe { self.socket.load(Ordering::Relaxed).as_ref() }
    }

    /// A descriptor of the connection: the registered one, or another one of the same connection
    /// if the application has closed that one (the registration outlives it).
    pub(crate) fn anchor(&self, socket: &Socket) -> Fd {
        let fd = self.fd.load(Ordering::Relaxed);
        if self.is_orphan() {
            // With `orphan`: the other numbers were in the table before this one was closed.
            fence(Ordering::Acquire);
            table::any_of(socket).unwrap_or(fd)
        } else {
            fd
        }
    }

    /// The set, unless it was closed since the registration.
    fn set(&self) -> Option<&'static EpollSet> {
        // SAFETY: sets are pool records, never unmapped.
        let set = unsafe { self.set.load(Ordering::Relaxed).as_ref() }?;
        let meant = self.generation.load(Ordering::Relaxed);
        (set.generation.load(Ordering::Relaxed) == meant).then_some(set)
    }

    /// Whether this is a registration in `set`. The caller holds the set's lock.
    pub(crate) fn is_in(&self, set: &EpollSet) -> bool {
        self.set().is_some_and(|own| core::ptr::eq(own, set))
    }

    /// Whether a hook has seen a wait in the set, which may be closed by now.
    fn is_waited_for(&self) -> bool {
        let meant = self.generation.load(Ordering::Relaxed).wrapping_add(1);
        // SAFETY: null, or a pool record, never unmapped.
        let set = unsafe { self.set.load(Ordering::Relaxed).as_ref() };
        set.is_some_and(|set| set.waited.load(Ordering::Relaxed) == meant)
    }

    /// Whether the registered descriptor is closed while others of the connection are open.
    pub(crate) fn is_orphan(&self) -> bool {
        self.orphan.load(Ordering::Relaxed)
    }

    /// Whether the library reports the registration's events. While a connection is being bound,
    /// its channel may exist while the kernel still reports. Changes under the set's lock.
    pub(crate) fn is_bound(&self) -> bool {
        self.segment.load(Ordering::Relaxed) != NO_SEGMENT
    }
}

/// The channels of one set that are in one segment.
#[derive(Debug)]
pub(crate) struct SetSegment {
    link: AtomicPtr<Link>,
    wait_slot: AtomicU32,
    /// Fork epoch in which the wait slot was claimed.
    epoch: AtomicU32,
    members: AtomicU32,
    by_slot: [AtomicPtr<Interest>; SLOTS],
}

impl SetSegment {
    /// The segment's link, while there are members or a waiter may still access it.
    pub(crate) fn link(&self) -> Option<&'static Link> {
        // SAFETY: links are pool records; the set holds a use of this one.
        unsafe { self.link.load(Ordering::Acquire).as_ref() }
    }

    /// The set's wait slot in the segment.
    pub(crate) fn wait_slot(&self) -> Option<&saiga_channel::wait_slot::WaitSlot> {
        let segment = self.link()?.segment()?;
        Some(segment.wait_slot(
            segment.side,
            self.wait_slot.load(Ordering::Relaxed) as usize,
        ))
    }

    /// Whether this process has claimed the wait slot. A forked child shares its parent's: what the
    /// child closes must not keep the parent from being woken.
    pub(crate) fn is_own(&self) -> bool {
        self.epoch.load(Ordering::Relaxed) == lock::epoch()
    }

    /// The registrations of a channel, one for each registered descriptor. Under the set's lock.
    pub(crate) fn interests(&self, slot: SlotIndex) -> impl Iterator<Item = &'static Interest> {
        let mut at = self.by_slot[slot.get()].load(Ordering::Relaxed);
        core::iter::from_fn(move || {
            // SAFETY: interests are pool records.
            let interest = unsafe { at.as_ref() }?;
            at = interest.twin.load(Ordering::Relaxed);
            Some(interest)
        })
    }

    /// All registrations in the segment. Under the set's lock.
    pub(crate) fn members(&self) -> impl Iterator<Item = &'static Interest> {
        let any = self.link().is_some();
        SlotIndex::all()
            .filter(move |_| any)
            .flat_map(|slot| self.interests(slot))
    }

    fn put(&self, slot: SlotIndex, interest: &'static Interest) {
        let head = &self.by_slot[slot.get()];
        interest
            .twin
            .store(head.load(Ordering::Relaxed), Ordering::Relaxed);
        head.store(core::ptr::from_ref(interest).cast_mut(), Ordering::Release);
        self.members.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes a registration; true when it was the channel's last.
    fn take_out(&self, slot: SlotIndex, gone: &Interest) -> bool {
        let head = &self.by_slot[slot.get()];
        let mut at = head;
        // SAFETY: interests are pool records.
        while let Some(i) = unsafe { at.load(Ordering::Relaxed).as_ref() } {
            if core::ptr::eq(i, gone) {
                at.store(i.twin.load(Ordering::Relaxed), Ordering::Release);
                break;
            }
            at = &i.twin;
        }
        self.members.fetch_sub(1, Ordering::Relaxed);
        head.load(Ordering::Relaxed).is_null()
    }
}

/// An epoll set that the application has made.
#[derive(Debug)]
pub(crate) struct EpollSet {
    pub(crate) lock: Lock,
    refs: AtomicU32,
    /// A descriptor of this process that refers to the set.
    number: AtomicI32,
    /// Distinguishes the sets that have used this record.
    generation: AtomicU32,
    /// One more than the generation in which a hook last saw a wait; 0: never.
    waited: AtomicU32,
    /// Threads inside an emulated wait; changes under the lock.
    pub(crate) waiters: Crowd,
    /// Threads that sleep in the kernel's set, emulated or not, and the name of their bell.
    pub(crate) sleepers: Sleepers,
    /// Closed by the application while threads are still inside.
    closing: AtomicBool,
    /// Replaces the application's descriptors once they are closed; -1: none.
    own_copy: AtomicI32,
    segments: Reserve,
    pub(crate) used_segments: AtomicU32,
    /// Segments that recently had events.
    pub(crate) hot: Hot,
    /// Whether a segment has lost its last member.
    stale: AtomicBool,
    bell_fd: AtomicI32,
    pub(crate) first_ready: AtomicPtr<Interest>,
    pub(crate) last_ready: AtomicPtr<Interest>,
    /// When the kernel was last polled (ticks).
    pub(crate) looked: AtomicU64,
    /// When to check for idle channels next (CLOCK_MONOTONIC, ns).
    pub(crate) look_at: AtomicU64,
    /// The last check found no memory to release later, and there was no event since.
    pub(crate) settled: AtomicBool,
    /// A channel took the only event when the kernel was due: next time the kernel goes first.
    pub(crate) kernel_first: AtomicBool,
    /// When peers of channels with events had last used TCP (ticks). `asked` is the time up to
    /// which the kernel has reported what came by TCP.
    peer_by_tcp: AtomicU64,
    asked: AtomicU64,
    /// CPU of the peer that sent the last event.
    pub(crate) peer_cpu: AtomicU32,
    /// Next in the list of sets that are polled by something else.
    next_latched: AtomicPtr<EpollSet>,
    /// Whether the set holds other sets.
    pub(crate) outer: AtomicBool,
    /// Fork epoch in which the set was made; an older epoch means shared by a fork.
    epoch: AtomicU32,
    next_free: AtomicPtr<EpollSet>,
}

impl Record for EpollSet {
    fn next_free(&self) -> &AtomicPtr<Self> {
        &self.next_free
    }
}

/// Records a set that the application has made.
pub(crate) fn open(fd: Fd) {
    let Some(set) = SET_POOL.take() else { return };
    set.number.store(fd, Ordering::Relaxed);
    set.waiters.clear();
    set.sleepers.clear();
    set.used_segments.store(0, Ordering::Relaxed);
    set.peer_by_tcp.store(0, Ordering::Relaxed);
    set.asked.store(1, Ordering::Relaxed);
    for none in [&set.bell_fd, &set.own_copy] {
        none.store(-1, Ordering::Relaxed);
    }
    for none in [&set.first_ready, &set.last_ready] {
        none.store(core::ptr::null_mut(), Ordering::Relaxed);
    }
    for no in [
        &set.stale,
        &set.closing,
        &set.outer,
        &set.kernel_first,
        &set.settled,
    ] {
        no.store(false, Ordering::Relaxed);
    }
    set.looked.store(0, Ordering::Relaxed);
    set.look_at.store(0, Ordering::Relaxed);
    set.peer_cpu.store(u32::MAX, Ordering::Relaxed);
    set.epoch.store(lock::epoch(), Ordering::Relaxed);
    set.refs.store(1, Ordering::SeqCst);
    table::set_epoll(fd, set);
}

/// Records that one more descriptor refers to the set.
pub(crate) fn duplicate(set: &'static EpollSet, fd: Fd) {
    set.refs.fetch_add(1, Ordering::Relaxed);
    set.number.store(fd, Ordering::Relaxed);
    table::set_epoll(fd, set);
}

/// Sets that are polled by something else. Sets stay in the list after they are closed.
static LATCHED: AtomicPtr<EpollSet> = AtomicPtr::new(core::ptr::null_mut());
static LATCHED_LOCK: Lock = Lock::new();

/// Records that the set is polled by something else: another set, poll, select or io_uring.
pub(crate) fn note_latched(set: &'static EpollSet) {
    let Some(_guard) = LATCHED_LOCK.lock() else {
        return;
    };
    if set.sleepers.latch() || latched().any(|s| core::ptr::eq(s, set)) {
        return;
    }
    set.next_latched
        .store(LATCHED.load(Ordering::Relaxed), Ordering::Relaxed);
    LATCHED.store(core::ptr::from_ref(set).cast_mut(), Ordering::Release);
}

/// The sets that are, or were, polled by something else.
pub(crate) fn latched() -> impl Iterator<Item = &'static EpollSet> {
    let mut at = LATCHED.load(Ordering::Acquire);
    core::iter::from_fn(move || {
        // SAFETY: sets are pool records; the list only grows.
        let set = unsafe { at.as_ref() }?;
        at = set.next_latched.load(Ordering::Acquire);
        Some(set)
    })
}

/// The registration whose address is the event data, if it is a record of ours.
pub(crate) fn by_data(data: u64) -> Option<&'static Interest> {
    POOL.at(data)
}

impl EpollSet {
    /// Whether the set was made by another process, our parent.
    pub(crate) fn is_foreign(&self) -> bool {
        self.epoch.load(Ordering::Relaxed) != lock::epoch()
    }

    /// Records that a hook has seen a wait in the set.
    pub(crate) fn note_wait(&self) {
        let now = self.generation.load(Ordering::Relaxed).wrapping_add(1);
        if self.waited.load(Ordering::Relaxed) != now {
            self.waited.store(now, Ordering::Relaxed);
        }
    }

    /// The set's bell. A set has one, and waits are emulated, once a connection in it was bound.
    pub(crate) fn bell(&self) -> Option<Bell> {
        let name = self.sleepers.bell()?;
        let fd = self.bell_fd.load(Ordering::Relaxed);
        Some(Bell { fd, name })
    }

    /// The segments that hold the set's channels; some may be empty.
    pub(crate) fn segments(&self) -> &[SetSegment] {
        let at = self.segments.at().cast::<SetSegment>();
        if at.is_null() {
            return &[];
        }
        let used = self.used_segments.load(Ordering::Acquire) as usize;
        // SAFETY: so many records were made accessible before `used` grew; zeroed memory is valid.
        unsafe { core::slice::from_raw_parts(at, used) }
    }

    /// Appends a registration to the ready list. The caller holds the lock.
    pub(crate) fn queue(&self, interest: &'static Interest) {
        if interest.queued.swap(true, Ordering::Relaxed) {
            return;
        }
        interest
            .next_ready
            .store(core::ptr::null_mut(), Ordering::Relaxed);
        let me = core::ptr::from_ref(interest).cast_mut();
        // SAFETY: list members are pool records.
        match unsafe { self.last_ready.load(Ordering::Relaxed).as_ref() } {
            Some(last) => last.next_ready.store(me, Ordering::Relaxed),
            None => self.first_ready.store(me, Ordering::Relaxed),
        }
        self.last_ready.store(me, Ordering::Relaxed);
    }

    /// Takes the first registration off the ready list. The caller holds the lock.
    pub(crate) fn unqueue(&self) -> Option<&'static Interest> {
        // SAFETY: list members are pool records.
        let first = unsafe { self.first_ready.load(Ordering::Relaxed).as_ref() }?;
        let next = first.next_ready.load(Ordering::Relaxed);
        self.first_ready.store(next, Ordering::Relaxed);
        if next.is_null() {
            self.last_ready.store(next, Ordering::Relaxed);
        }
        first.queued.store(false, Ordering::Relaxed);
        Some(first)
    }

    /// Removes a registration from the ready list. The caller holds the lock.
    fn remove_from_queue(&self, gone: &'static Interest) {
        if !gone.queued.load(Ordering::Relaxed) {
            return;
        }
        let mut kept: *mut Interest = core::ptr::null_mut();
        // Rebuild the list without it: removal is rare, the list is short.
        let mut first: *mut Interest = core::ptr::null_mut();
        while let Some(i) = self.unqueue() {
            if core::ptr::eq(i, gone) {
                continue;
            }
            i.queued.store(true, Ordering::Relaxed);
            let me = core::ptr::from_ref(i).cast_mut();
            i.next_ready.store(core::ptr::null_mut(), Ordering::Relaxed);
            // SAFETY: `kept` is null or a pool record.
            match unsafe { kept.as_ref() } {
                Some(last) => last.next_ready.store(me, Ordering::Relaxed),
                None => first = me,
            }
            kept = me;
        }
        self.first_ready.store(first, Ordering::Relaxed);
        self.last_ready.store(kept, Ordering::Relaxed);
    }

    /// Releases segments without members. The caller holds the lock; no thread may be waiting.
    pub(crate) fn sweep(&self) {
        if !self.waiters.is_empty(lock::epoch()) || !self.stale.swap(false, Ordering::Relaxed) {
            return;
        }
        for s in self
            .segments()
            .iter()
            .filter(|s| s.members.load(Ordering::Relaxed) == 0)
        {
            let Some(link) = s.link() else { continue };
            if let Some(segment) = link.segment().filter(|_| s.is_own()) {
                segment.release_wait_slot(s.wait_slot.load(Ordering::Relaxed) as usize);
            }
            s.link.store(core::ptr::null_mut(), Ordering::Release);
            links::leave(link);
        }
    }

    /// Unregisters everything when the set ends. Records of plain sockets become stale.
    fn retire(&'static self) {
        for s in self.segments() {
            for interest in SlotIndex::all().flat_map(|slot| s.interests(slot)) {
                if let Some(socket) = interest.socket() {
                    registration::forget_set(socket, self);
                }
            }
        }
        self.generation.fetch_add(1, Ordering::Relaxed);
        let Some(_guard) = self.lock.lock() else {
            return;
        };
        self.stale.store(true, Ordering::Relaxed);
        self.sweep();
    }

    /// The index of the set's entry for a link, which is made if needed. The caller holds the lock.
    fn segment_for(&self, link: &'static Link) -> Sys<usize> {
        if !self.segments.begin(SEGMENTS * size_of::<SetSegment>()) {
            return Err(Errno(libc::ENOMEM));
        }
        let same = |s: &SetSegment| core::ptr::eq(s.link.load(Ordering::Relaxed), link);
        if let Some(index) = self.segments().iter().position(same) {
            return Ok(index);
        }
        let bell = self.sleepers.bell().ok_or(Errno(libc::ENOENT))?;
        let wait_slot = link.segment().and_then(|s| s.claim_wait_slot(bell));
        let wait_slot = wait_slot.ok_or(Errno(libc::ENOSPC))?;
        let empty = |s: &SetSegment| s.link.load(Ordering::Relaxed).is_null();
        let index = self.segments().iter().position(empty);
        let index = index.unwrap_or(self.used_segments.load(Ordering::Relaxed) as usize);
        if !self.segments.reach((index + 1) * size_of::<SetSegment>()) {
            return Err(Errno(libc::ENOSPC));
        }
        let used = u32::try_from(index + 1).unwrap_or(0);
        self.used_segments.fetch_max(used, Ordering::AcqRel);
        let entry = &self.segments()[index];
        entry
            .wait_slot
            .store(u32::try_from(wait_slot).unwrap_or(0), Ordering::Relaxed);
        entry.epoch.store(lock::epoch(), Ordering::Relaxed);
        entry.members.store(0, Ordering::Relaxed);
        link.hold();
        entry
            .link
            .store(core::ptr::from_ref(link).cast_mut(), Ordering::Release);
        Ok(index)
    }

    /// Makes the set's bell and adds it to the kernel's set, so that a ring wakes sleepers at once.
    fn ensure_bell(&'static self, epfd: Fd) -> Sys<()> {
        if self.bell().is_some() {
            return Ok(());
        }
        let bell = Bell::create(rt::floor())?;
        let watch = libc::EPOLLIN.cast_unsigned();
        if let Err(e) = sys::epoll_ctl(epfd, libc::EPOLL_CTL_ADD, bell.fd, watch, BELL_DATA) {
            sys::close(bell.fd);
            return Err(e);
        }
        rt::keep(&self.bell_fd, bell.fd);
        self.sleepers.hang_bell(bell.name); // Then check for sleepers: see `plain`.
        Ok(())
    }
}
