//! The segments of this process.
//!
//! A segment is memory shared with one peer process; its slots carry connections. This module
//! records the peer of each segment, allocates slots, bounds the segments that a peer may make this
//! process map, and unmaps segments that are not used any more.

#![expect(unsafe_code, reason = "records that hold a mapped segment")]

use crate::lock::{self, Guard, Lock};
use crate::pool::{Pool, Record};
use crate::{fork, rt, table};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use saiga_channel::bus_error;
use saiga_channel::layout::{OPEN_CLOSED, OPEN_UNUSED, Side, SlotIndex, WAIT_SLOTS};
use saiga_channel::rendezvous::Credentials;
use saiga_channel::segment::Segment;
use saiga_channel::sys::{self, Sys};

/// Segments that one process can map.
const LINKS: usize = 4096;
/// Unused segments kept for the next connection between the same processes.
const SPARE: usize = 4;

/// Segments that one peer process may have us map, however few connections use them.
const UNFILLED: usize = 128;
/// One more segment is allowed for this number of connections, or epoll sets, in the earlier ones.
const USES: usize = 8;

static POOL: Pool<Link, LINKS> = Pool::new();
/// Guards the list and every link's `users` going to zero.
static LOCK: Lock = Lock::new();
static FIRST: AtomicPtr<Link> = AtomicPtr::new(core::ptr::null_mut());

/// A segment and the process that shares it.
#[derive(Debug)]
pub(crate) struct Link {
    segment: UnsafeCell<Option<Segment>>,
    peer_pid: AtomicU32,
    peer_uid: AtomicU32,
    /// Bits of allocated slots; kept by side 0.
    taken: AtomicU64,
    /// Whether the peer has mapped it, shown by its agreement to a slot; kept by side 0.
    delivered: AtomicBool,
    /// Whether the peer takes no further connection in it; kept by side 0.
    retired: AtomicBool,
    /// Sockets and epoll sets of this process that use the segment.
    users: AtomicU32,
    /// The last poll that claimed a wait slot in it, a multiple of `WAIT_SLOTS`, plus the slot's
    /// index.
    polled: AtomicU64,
    /// Fork epoch of its registration: a child frees no slots of its parent's segments.
    epoch: AtomicU32,
    /// Forks before its registration: a process forked since has the memory mapped, too.
    forks: AtomicU32,
    next: AtomicPtr<Link>,
    next_free: AtomicPtr<Link>,
}

// SAFETY: `segment` is written only under LOCK while the link has no users.
unsafe impl Sync for Link {}

impl Record for Link {
    fn next_free(&self) -> &AtomicPtr<Self> {
        &self.next_free
    }
}

impl Link {
    /// The segment; present while the caller counts as a user.
    pub(crate) fn segment(&self) -> Option<&Segment> {
        // SAFETY: not written while there are users.
        unsafe { &*self.segment.get() }.as_ref()
    }

    /// Counts one more user.
    pub(crate) fn hold(&self) {
        self.users.fetch_add(1, Ordering::SeqCst);
    }

    /// The wait slot that a call of `poll(2)` has claimed, if that call was the last to claim one.
    pub(crate) fn polled_by(&self, call: u64) -> Option<usize> {
        let wait_slot = self.polled.load(Ordering::Relaxed).wrapping_sub(call);
        usize::try_from(wait_slot)
            .ok()
            .filter(|index| *index < WAIT_SLOTS)
    }

    /// Records the call and its slot for [`polled_by`](Self::polled_by); `call` is a multiple of
    /// `WAIT_SLOTS`.
    pub(crate) fn note_polled(&self, call: u64, wait_slot: usize) {
        self.polled
            .store(call + wait_slot as u64, Ordering::Relaxed);
    }

    /// Records that the peer has agreed to one of the segment's slots.
    pub(crate) fn note_delivered(&self) {
        self.delivered.store(true, Ordering::Relaxed);
    }

    /// Ends the use of the segment for new connections: the peer does not know it (any more), or
    /// has forked since it received it, and would decline each later proposal, too.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
    }

    /// Whether it may carry further connections.
    fn is_in_service(&self) -> bool {
        let damaged = self.segment().is_some_and(Segment::is_damaged);
        self.is_private() && !self.retired.load(Ordering::Relaxed) && !damaged
    }

    /// Whether only this process and the peer have the memory mapped. Otherwise a child could read
    /// connections that its parent opens after the fork, and a parent those of its child.
    fn is_private(&self) -> bool {
        self.forks.load(Ordering::Relaxed) == fork::forks()
    }

    /// The process at the other end.
    pub(crate) fn peer_pid(&self) -> u32 {
        self.peer_pid.load(Ordering::Relaxed)
    }
}

/// The link behind a socket's word.
pub(crate) fn of(word: *mut Link) -> Option<&'static Link> {
    // SAFETY: null, or a pool record.
    unsafe { word.as_ref() }
}

/// Keeps every segment mapped while the caller has the guard. `None` in a signal handler above the
/// holder of the lock.
pub(crate) fn keep_all() -> Option<Guard<'static>> {
    LOCK.lock()
}

fn iter() -> impl Iterator<Item = &'static Link> {
    let mut at = FIRST.load(Ordering::Relaxed);
    core::iter::from_fn(move || {
        // SAFETY: list members are pool records, never unmapped; the list is read under LOCK.
        let link = unsafe { at.as_ref() }?;
        at = link.next.load(Ordering::Relaxed);
        Some(link)
    })
}

fn register(segment: Segment, peer: Credentials) -> Option<&'static Link> {
    let Some(link) = POOL.take() else {
        // SAFETY: no other thread has seen the segment yet.
        unsafe { segment.release() };
        return None;
    };
    // SAFETY: the record is not in the list: no other thread looks at it.
    let segment = unsafe { &mut *link.segment.get() }.insert(segment);
    table::hide(segment.fd(), segment.fd_holder());
    link.peer_pid.store(peer.pid, Ordering::Relaxed);
    link.peer_uid.store(peer.uid, Ordering::Relaxed);
    link.taken.store(0, Ordering::Relaxed);
    link.delivered.store(false, Ordering::Relaxed);
    link.retired.store(false, Ordering::Relaxed);
    link.users.store(1, Ordering::Relaxed);
    link.polled.store(0, Ordering::Relaxed);
    link.epoch.store(lock::epoch(), Ordering::Relaxed);
    link.forks.store(fork::forks(), Ordering::Relaxed);
    link.next
        .store(FIRST.load(Ordering::Relaxed), Ordering::Relaxed);
    FIRST.store(core::ptr::from_ref(link).cast_mut(), Ordering::Relaxed);
    rt::header().segments.fetch_add(1, Ordering::Relaxed);
    Some(link)
}

/// Allocates a slot for a new connection to `peer`, in a segment that this process made. The caller
/// becomes a user of the link. `true`: the peer may not have the segment yet. Connections proposed
/// at the same time are received in any order, so each of them carries the segment.
pub(crate) fn propose_slot(
    peer: Credentials,
    fresh: bool,
) -> Sys<(&'static Link, SlotIndex, bool)> {
    let _guard = LOCK.lock().ok_or(sys::Errno(libc::EAGAIN))?;
    let known = iter().filter(|l| {
        !fresh
            && l.is_in_service()
            && peer.pid != 0
            && l.peer_pid() == peer.pid
            && l.peer_uid.load(Ordering::Relaxed) == peer.uid
            && l.segment().is_some_and(|s| s.side == Side(0))
    });
    for link in known {
        if let Some(slot) = take_slot(link) {
            link.hold();
            return Ok((link, slot, !link.delivered.load(Ordering::Relaxed)));
        }
    }
    prepare()?;
    let segment = Segment::create(rt::floor())?;
    let link = register(segment, peer).ok_or(sys::Errno(libc::ENOMEM))?;
    let slot = take_slot(link).ok_or(sys::Errno(libc::ENOMEM))?;
    Ok((link, slot, true))
}

/// Allocates a free slot. The caller holds LOCK.
fn take_slot(link: &Link) -> Option<SlotIndex> {
    let taken = link.taken.load(Ordering::Relaxed);
    let free = SlotIndex::new((!taken).trailing_zeros())?;
    // Until the slot is prepared it must not look as if both sides had left it, or a search for
    // such slots would free it once more.
    let segment = link.segment()?;
    segment.open_slot(free).ok()?;
    segment.own_slot(free).begin();
    for side in &segment.slot(free).sides {
        side.open.store(OPEN_UNUSED, Ordering::SeqCst);
    }
    link.taken.fetch_or(free.bit(), Ordering::SeqCst);
    Some(free)
}

/// Outcome of a search for a segment that a peer names.
#[derive(Debug)]
pub(crate) enum Known {
    /// The peer has sent it since our last fork. The caller has become a user.
    Ours(&'static Link),
    /// A process forked since then has it mapped, too.
    Shared,
    /// It is not mapped in this process.
    No,
}

/// Prepares the process for its first segment. An error concerns the calling connection only.
pub(crate) fn prepare() -> Sys<()> {
    static PREPARED: AtomicBool = AtomicBool::new(false);
    static PREPARING: Lock = Lock::new();
    if PREPARED.load(Ordering::Acquire) {
        return Ok(());
    }
    let _guard = PREPARING.lock().ok_or(sys::Errno(libc::EAGAIN))?;
    if !PREPARED.load(Ordering::Acquire) {
        bus_error::prepare()?;
        PREPARED.store(true, Ordering::Release);
    }
    Ok(())
}

/// Finds a segment that the process behind `peer` made and sent earlier.
pub(crate) fn find(peer: Credentials, id: u64) -> Known {
    let Some(_guard) = LOCK.lock() else {
        return Known::No;
    };
    known(peer, id)
}

/// As [`find`], for a caller that holds LOCK.
fn known(peer: Credentials, id: u64) -> Known {
    let found = iter().find(|l| {
        l.peer_pid() == peer.pid
            && l.peer_uid.load(Ordering::Relaxed) == peer.uid
            && l.segment()
                .is_some_and(|s| s.side == Side(1) && s.id() == id)
    });
    match found {
        Some(link) if link.is_private() => {
            link.hold();
            Known::Ours(link)
        }
        Some(_) => Known::Shared,
        None => Known::No,
    }
}

/// Number of peers that had a CPU between two moments (ticks), by their own account. 0 when another
/// thread holds the lock of the list.
pub(crate) fn peers_on_cpu_between(since: u64, until: u64) -> usize {
    let Some(_guard) = LOCK.try_lock() else {
        return 0;
    };
    let turns = iter().filter_map(|l| Some(l.segment()?.peer_turn()));
    turns.filter(|at| (since..until).contains(at)).count()
}

/// Whether the process behind `peer` may make us map one more segment. An honest process fills its
/// segments: it needs a new one for every 64 connections, or after a fork. Segments from
/// before our own last fork do not count, because that fork is why they are not filled.
pub(crate) fn may_adopt(peer: Credentials) -> bool {
    LOCK.lock().is_some_and(|_guard| given(peer).may_grow(peer))
}

/// Counts of segments that other processes made and this one has mapped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Given {
    by_user: usize,
    by_process: usize,
    /// Uses of the segments that the peer process made.
    uses: usize,
}

impl Given {
    fn may_grow(self, peer: Credentials) -> bool {
        let Given {
            by_user,
            by_process,
            uses,
        } = self;
        // PID 0 stands for all processes of PID namespaces that are invisible here.
        let unseen = peer.pid == 0;
        by_user < LINKS / 2 && (unseen || by_process < UNFILLED + uses / USES)
    }
}

/// Counts the segments of the process behind `peer`, and of its user. The caller holds LOCK.
fn given(peer: Credentials) -> Given {
    let mut given = Given::default();
    let theirs = |l: &&Link| l.segment().is_some_and(|s| s.side == Side(1));
    for link in iter().filter(theirs) {
        given.by_user += usize::from(link.peer_uid.load(Ordering::Relaxed) == peer.uid);
        if link.peer_pid() == peer.pid && link.is_private() {
            given.by_process += 1;
            given.uses += link.users.load(Ordering::Relaxed) as usize;
        }
    }
    given
}

/// Registers a segment that the process behind `peer` has sent, unless another connection has
/// registered it since [`find`]. A segment mapped twice would have two lists of its wait slots: two
/// epoll sets would use one slot, and one of them would not be woken.
pub(crate) fn adopt(segment: Segment, peer: Credentials) -> Known {
    let guard = LOCK.lock();
    let already = match guard {
        Some(_) => known(peer, segment.id()),
        None => Known::Shared,
    };
    if matches!(already, Known::No) {
        return register(segment, peer).map_or(Known::No, Known::Ours);
    }
    // SAFETY: the mapping was not registered, so no other thread can have it.
    unsafe { segment.release() };
    already
}

/// Ends the use of a link by a connection whose side has left its slot. A few unused segments are
/// kept for the next connection between the same processes.
pub(crate) fn leave_slot(link: &'static Link) {
    if let Some(_guard) = LOCK.lock() {
        reclaim_slots(link);
    }
    leave(link);
}

/// Frees a slot that was proposed and never used by the peer.
pub(crate) fn cancel_slot(link: &'static Link, slot: SlotIndex) {
    if let Some(_guard) = LOCK.lock() {
        free_slot(link, slot);
    }
    leave(link);
}

/// Frees a slot. The caller holds LOCK: a slot freed twice would carry two connections.
fn free_slot(link: &Link, slot: SlotIndex) {
    // A forked child leaves its parent's slots alone: the parent may allocate them again.
    let ours = link.epoch.load(Ordering::Relaxed) == lock::epoch();
    if let Some(segment) = link.segment().filter(|s| ours && s.side == Side(0)) {
        segment.depopulate(slot);
        link.taken.fetch_and(!slot.bit(), Ordering::SeqCst);
    }
}

/// Frees the slots that both sides have left since the last call. The caller holds LOCK.
fn reclaim_slots(link: &Link) {
    let Some(segment) = link.segment().filter(|s| s.side == Side(0)) else {
        return;
    };
    let taken = link.taken.load(Ordering::SeqCst);
    for slot in SlotIndex::all().filter(|slot| taken & slot.bit() != 0) {
        let theirs = &segment.slot(slot).sides[segment.side.peer().0].open;
        let both = segment.own_slot(slot).is_closed();
        if both && theirs.load(Ordering::SeqCst) == OPEN_CLOSED {
            free_slot(link, slot);
        }
    }
}

/// Ends one use of a link, and unmaps segments that need not be kept.
pub(crate) fn leave(link: &'static Link) {
    let Some(_guard) = LOCK.lock() else { return };
    link.users.fetch_sub(1, Ordering::SeqCst);
    sweep();
}

/// In a forked child, unmaps the parent's segments in which the child has no connection.
pub(crate) fn forked() {
    if let Some(_guard) = LOCK.lock() {
        sweep();
    }
}

/// Unmaps unused segments: those beyond a few spares, those of dead peers, and those that take no
/// further connection. The caller holds LOCK.
fn sweep() {
    let mut spare = 0;
    let mut at = &FIRST;
    // SAFETY: list members are pool records; the list changes under LOCK only.
    while let Some(l) = unsafe { at.load(Ordering::Relaxed).as_ref() } {
        let unused = l.users.load(Ordering::SeqCst) == 0;
        if unused && (spare >= SPARE || !l.is_in_service() || !sys::alive(l.peer_pid())) {
            at.store(l.next.load(Ordering::Relaxed), Ordering::Relaxed);
            discard(l);
            continue;
        }
        spare += usize::from(unused);
        at = &l.next;
    }
}

fn discard(link: &'static Link) {
    // SAFETY: no users, no longer in the list: no thread looks at it.
    if let Some(segment) = unsafe { (*link.segment.get()).take() } {
        table::clear(segment.fd());
        // SAFETY: no users: no slot, wait slot or bytes of it are in use.
        unsafe { segment.release() };
        if link.epoch.load(Ordering::Relaxed) == lock::epoch() {
            rt::header().segments.fetch_sub(1, Ordering::Relaxed); // A child's counter began at 0.
        }
    }
    POOL.put(link);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_that_two_connections_carry_is_mapped_once() {
        assert!(table::init());
        let made = Segment::create(3).expect("memory");
        let peer = Credentials { pid: 1, uid: 0 };
        let again = || sys::fcntl(made.fd(), libc::F_DUPFD_CLOEXEC, 3).expect("a descriptor");
        let brought = || Segment::adopt(again(), 3).expect("it is sealed");
        let (first, second) = (brought(), brought());
        let Known::Ours(one) = adopt(first, peer) else {
            panic!("the segment was known")
        };
        let Known::Ours(other) = adopt(second, peer) else {
            panic!("the segment was not recognised")
        };
        assert!(core::ptr::eq(one, other));
        assert_eq!(one.users.load(Ordering::SeqCst), 2);
        leave(one);
        leave(one);
    }

    #[test]
    fn segments_of_one_user_are_bounded_across_its_processes() {
        let peer = |pid, uid| Credentials { pid, uid };
        let of_user = |by_user| Given {
            by_user,
            ..Given::default()
        };
        for pid in [0, 7] {
            assert!(of_user(LINKS / 2 - 1).may_grow(peer(pid, 5)));
            assert!(!of_user(LINKS / 2).may_grow(peer(pid, 5)));
        }
        let mut given_here = Given {
            by_process: UNFILLED,
            ..of_user(UNFILLED)
        };
        assert!(!given_here.may_grow(peer(7, 5)));
        assert!(
            given_here.may_grow(peer(0, 5)),
            "PID 0 may be many processes"
        );
        given_here.uses = USES;
        assert!(given_here.may_grow(peer(7, 5)));

        assert!(table::init());
        let bring = |peer| {
            let made = Segment::create(3).expect("memory");
            let again = sys::fcntl(made.fd(), libc::F_DUPFD_CLOEXEC, 3).expect("a descriptor");
            let brought = Segment::adopt(again, 3).expect("it is sealed");
            let Known::Ours(link) = adopt(brought, peer) else {
                panic!("the segment was known")
            };
            link
        };
        let links = [peer(7, 5), peer(8, 5), peer(8, 5), peer(8, 6)].map(bring);
        let counted = |peer| {
            let _guard = LOCK.lock();
            let Given {
                by_user,
                by_process,
                uses,
            } = given(peer);
            (by_user, by_process, uses)
        };
        assert_eq!(counted(peer(8, 5)), (3, 3, 3));
        assert_eq!(counted(peer(9, 5)), (3, 0, 0));
        links.into_iter().for_each(leave);
    }
}
