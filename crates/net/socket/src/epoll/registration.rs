//! Registrations: `epoll_ctl(2)`, and how a registration moves from the kernel to the library and
//! back.
//!
//! A program adds, modifies and removes registrations of plain and of bound sockets; an upgrade
//! moves all registrations of a socket to the library, a downgrade moves them back.
//!
//! Lock order: the socket's state lock first, then the set's.

#![expect(unsafe_code, reason = "lists of pool records")]

use super::kernel_view;
use super::{
    ANCHOR, EDGE, EXCLUSIVE, EXCLUSIVE_MAY, EpollSet, Interest, NO_SEGMENT, ONESHOT, POOL,
};
use crate::chan::Chan;
use crate::lock::{self, Guard};
use crate::sock::Socket;
use crate::state::{Mode, Phase};
use crate::{chaos, readiness, rt};
use core::sync::atomic::Ordering;
use saiga_channel::layout::SlotIndex;
use saiga_channel::sys::{self, Errno, Fd, Sys};
use saiga_status::Reason;

/// The registrations of a socket. The caller holds the socket's state lock.
fn of_socket(socket: &Socket) -> impl Iterator<Item = &'static Interest> {
    let mut at = socket.interests.load(Ordering::Relaxed);
    core::iter::from_fn(move || {
        // SAFETY: list members are pool records.
        let interest = unsafe { at.as_ref() }?;
        at = interest.next_of_socket.load(Ordering::Relaxed);
        Some(interest)
    })
}

fn find(socket: &Socket, set: &EpollSet, fd: Fd) -> Option<&'static Interest> {
    of_socket(socket).filter(|i| !i.is_orphan()).find(|i| {
        i.set().is_some_and(|s| core::ptr::eq(s, set)) && i.fd.load(Ordering::Relaxed) == fd
    })
}

/// Serves `epoll_ctl(2)` on one of our sockets in a known set.
///
/// # Errors
/// As `man 2 epoll_ctl`.
pub(crate) fn control(
    epfd: Fd,
    set: &'static EpollSet,
    op: i32,
    fd: Fd,
    socket: &'static Socket,
    event: Option<(u32, u64)>,
) -> Sys<()> {
    let Some(_state) = socket.state_lock.lock() else {
        return Err(Errno(libc::EBUSY));
    };
    drop_stale(socket);
    let known = find(socket, set, fd);
    if socket.is_bound() {
        return control_bound(epfd, set, op, fd, socket, known, event);
    }
    let (events, data) = event.unwrap_or((0, 0));
    match known.filter(|i| i.parked.load(Ordering::Relaxed)) {
        Some(parked) => unpark(epfd, op, fd, parked, events, data)?,
        None => sys::epoll_ctl(epfd, op, fd, events, data)?,
    }
    let Some(_guard) = set.lock.lock() else {
        return Ok(());
    };
    match (op, known) {
        (libc::EPOLL_CTL_ADD | libc::EPOLL_CTL_MOD, Some(i)) => note(i, events, data),
        (libc::EPOLL_CTL_ADD, None) => {
            if let Some(i) = add(set, fd, socket) {
                note(i, events, data);
            } else {
                socket.never(fd, Reason::OutOfMemory);
            }
        }
        (libc::EPOLL_CTL_DEL, Some(i)) => remove(set, socket, i),
        _ => {}
    }
    Ok(())
}

/// Serves `epoll_ctl(2)` on a registration that the kernel's set no longer contains.
fn unpark(epfd: Fd, op: i32, fd: Fd, parked: &Interest, events: u32, data: u64) -> Sys<()> {
    match op {
        libc::EPOLL_CTL_ADD => return Err(Errno(libc::EEXIST)),
        libc::EPOLL_CTL_MOD => {
            let added = sys::epoll_ctl(epfd, libc::EPOLL_CTL_ADD, fd, events, data);
            if added == Err(Errno(libc::EEXIST)) {
                // A process that shares the set by a fork was first.
                sys::epoll_ctl(epfd, op, fd, events, data)?;
            } else {
                added?;
            }
        }
        libc::EPOLL_CTL_DEL => {}
        _ => return Err(Errno(libc::EINVAL)),
    }
    parked.parked.store(false, Ordering::Relaxed);
    Ok(())
}

fn note(interest: &Interest, events: u32, data: u64) {
    interest.events.store(events, Ordering::Relaxed);
    interest.data.store(data, Ordering::Relaxed);
    interest.spent.store(false, Ordering::Relaxed);
    interest.kept.store(false, Ordering::Relaxed);
    interest.active.store(true, Ordering::Relaxed);
}

fn add(set: &'static EpollSet, fd: Fd, socket: &'static Socket) -> Option<&'static Interest> {
    let interest = POOL.take()?;
    interest
        .set
        .store(core::ptr::from_ref(set).cast_mut(), Ordering::Relaxed);
    interest
        .generation
        .store(set.generation.load(Ordering::Relaxed), Ordering::Relaxed);
    interest
        .socket
        .store(core::ptr::from_ref(socket).cast_mut(), Ordering::Relaxed);
    interest.fd.store(fd, Ordering::Relaxed);
    interest.queued.store(false, Ordering::Relaxed);
    interest.handed_on.store(0, Ordering::Relaxed);
    interest.active.store(false, Ordering::Relaxed);
    interest.orphan.store(false, Ordering::Relaxed);
    interest.kept.store(false, Ordering::Relaxed);
    interest.parked.store(false, Ordering::Relaxed);
    interest.segment.store(NO_SEGMENT, Ordering::Relaxed);
    let first = socket.interests.load(Ordering::Relaxed);
    interest.next_of_socket.store(first, Ordering::Relaxed);
    socket
        .interests
        .store(core::ptr::from_ref(interest).cast_mut(), Ordering::Relaxed);
    Some(interest)
}

/// Removes a registration. The caller holds both locks.
fn remove(set: &'static EpollSet, socket: &Socket, gone: &'static Interest) {
    set.remove_from_queue(gone);
    unlink(socket, gone);
}

/// Removes the records about sets that were closed: a program may make a set for every wait. The
/// caller holds the socket's state lock.
fn drop_stale(socket: &Socket) {
    let stale = |i: &&'static Interest| i.set().is_none() && !i.is_bound();
    // A record that was put back into the pool keeps its link, which is read before the put anyway.
    for interest in of_socket(socket).filter(stale) {
        unlink(socket, interest);
    }
}

/// Whether the calling thread is inside a set that contains the connection: this is a signal
/// handler, which cannot move the registration. The caller holds the socket's state lock.
pub(crate) fn is_locked_below(socket: &Socket) -> bool {
    of_socket(socket)
        .filter_map(Interest::set)
        .any(|set| set.lock.is_mine())
}

/// Whether a hook has seen a wait on the socket. Membership in a set is not enough: the program may
/// wait there by raw system calls. The caller holds the socket's state lock.
pub(crate) fn is_waited_for(socket: &Socket) -> bool {
    if of_socket(socket).any(Interest::is_waited_for) {
        socket.nonblock.note_wait();
    }
    socket.nonblock.is_waited_for()
}

/// Removes a registration that is in no ready list from its socket's list.
fn unlink(socket: &Socket, gone: &'static Interest) {
    if gone.is_waited_for() {
        socket.nonblock.note_wait();
    }
    let mut at = &socket.interests;
    // SAFETY: list members are pool records.
    while let Some(i) = unsafe { at.load(Ordering::Relaxed).as_ref() } {
        if core::ptr::eq(i, gone) {
            at.store(i.next_of_socket.load(Ordering::Relaxed), Ordering::Relaxed);
            break;
        }
        at = &i.next_of_socket;
    }
    gone.socket.store(core::ptr::null_mut(), Ordering::Relaxed);
    gone.set.store(core::ptr::null_mut(), Ordering::Relaxed);
    POOL.put(gone);
}

/// Serves `epoll_ctl(2)` on a bound socket: no system call once the anchor is watched.
fn control_bound(
    epfd: Fd,
    set: &'static EpollSet,
    op: i32,
    fd: Fd,
    socket: &'static Socket,
    known: Option<&'static Interest>,
    event: Option<(u32, u64)>,
) -> Sys<()> {
    let active = known.filter(|i| i.active.load(Ordering::Relaxed));
    match (op, active) {
        (libc::EPOLL_CTL_ADD, Some(_)) => return Err(Errno(libc::EEXIST)),
        (libc::EPOLL_CTL_MOD | libc::EPOLL_CTL_DEL, None) => return Err(Errno(libc::ENOENT)),
        (libc::EPOLL_CTL_DEL, Some(i)) => {
            i.active.store(false, Ordering::Relaxed);
            return Ok(());
        }
        (libc::EPOLL_CTL_ADD | libc::EPOLL_CTL_MOD, _) => {}
        _ => return Err(Errno(libc::EINVAL)),
    }
    let (events, data) = event.ok_or(Errno(libc::EFAULT))?;
    let was_exclusive = active.is_some_and(|i| i.events.load(Ordering::Relaxed) & EXCLUSIVE != 0);
    let wrong = events & EXCLUSIVE != 0 && (active.is_some() || events & !EXCLUSIVE_MAY != 0);
    if wrong || was_exclusive {
        return Err(Errno(libc::EINVAL)); // As `man 2 epoll_ctl` says of EPOLLEXCLUSIVE.
    }
    let Some(guard) = set.lock.lock() else {
        return Err(Errno(libc::EBUSY));
    };
    let interest = match known {
        Some(i) => i,
        None => {
            let i = add(set, fd, socket).ok_or(Errno(libc::ENOMEM))?;
            let chan = Chan::of(socket).ok_or(Errno(libc::ENOTCONN))?;
            if let Err(e) = bind_one(epfd, set, i, &chan, libc::EPOLL_CTL_ADD) {
                remove(set, socket, i);
                return Err(e);
            }
            i
        }
    };
    note(interest, events, data);
    set.queue(interest);
    set.wake_others(&guard);
    Ok(())
}

impl EpollSet {
    /// Wakes sleepers in this set, or pollers of it, after this process itself made something
    /// ready. The caller holds the lock. A thread that goes to sleep takes the lock to check the
    /// ready list after it has counted itself as a sleeper.
    pub(crate) fn wake_others(&self, _guard: &Guard<'_>) {
        if let Some(bell) = self.sleepers.to_ring(lock::epoch()) {
            rt::ring(bell);
        }
    }
}

/// Moves one registration from the kernel to the library. The caller holds both locks.
fn bind_one(
    epfd: Fd,
    set: &'static EpollSet,
    interest: &'static Interest,
    chan: &Chan,
    op: i32,
) -> Sys<()> {
    if interest.is_orphan() {
        return Err(Errno(libc::ENOENT)); // No number refers to the kernel's registration any more.
    }
    let parked = interest.parked.load(Ordering::Relaxed);
    let op = if parked { libc::EPOLL_CTL_ADD } else { op };
    if op == libc::EPOLL_CTL_MOD {
        take_one_shot(epfd, interest)?;
    }
    set.ensure_bell(epfd)?;
    let index = set.segment_for(chan.link)?;
    let data = core::ptr::from_ref(interest) as u64;
    watch_anchor(epfd, interest, op, data)?;
    interest.parked.store(false, Ordering::Relaxed);
    interest.kept.store(false, Ordering::Relaxed);
    let entry = &set.segments()[index];
    entry.put(chan.index, interest);
    interest.segment.store(
        u32::try_from(index).unwrap_or(NO_SEGMENT),
        Ordering::Relaxed,
    );
    interest.slot.store(chan.index.number(), Ordering::Relaxed);
    let wait_slot = entry.wait_slot.load(Ordering::Relaxed) as usize;
    chan.ours().rx_wait_slots.enter(wait_slot);
    chan.ours().tx_wait_slots.enter(wait_slot);
    set.queue(interest);
    Ok(())
}

/// Takes over a one-shot registration only if it has fired and is not armed again yet, as while a
/// thread of a pool serves the connection: an armed one may fire in the kernel at this very moment,
/// and then here once more.
fn take_one_shot(epfd: Fd, interest: &Interest) -> Sys<()> {
    if interest.events.load(Ordering::Relaxed) & ONESHOT == 0 {
        return Ok(());
    }
    match kernel_view::is_spent(epfd, interest.fd.load(Ordering::Relaxed)) {
        Some(true) => interest.spent.store(true, Ordering::Relaxed),
        Some(false) => return Err(Errno(libc::EAGAIN)),
        None => return Err(Errno(libc::ENOENT)), // A wrong guess fires twice, or never.
    }
    Ok(())
}

/// Makes the kernel's registration the watch of the anchor.
fn watch_anchor(epfd: Fd, interest: &Interest, op: i32, data: u64) -> Sys<()> {
    let fd = interest.fd.load(Ordering::Relaxed);
    let (asked, asked_data) = asked_for(interest);
    interest.for_room.store(false, Ordering::Relaxed);
    let kept = interest.kept.load(Ordering::Relaxed);
    if op == libc::EPOLL_CTL_MOD && asked & EXCLUSIVE != 0 && !kept {
        return make_anew(epfd, fd, (asked, asked_data), (ANCHOR, data));
    }
    sys::epoll_ctl(epfd, op, fd, ANCHOR, data)
}

/// The events and the data that the application has registered.
fn asked_for(interest: &Interest) -> (u32, u64) {
    (
        interest.events.load(Ordering::Relaxed),
        interest.data.load(Ordering::Relaxed),
    )
}

/// Replaces a registration by DEL and ADD: an exclusive registration cannot be modified, nor can
/// one be made exclusive by MOD. The former one is restored if the new one is refused, for lack of
/// memory or because the user's other processes have taken the last watches.
fn make_anew(epfd: Fd, fd: Fd, former: (u32, u64), new: (u32, u64)) -> Sys<()> {
    let add = |(events, data)| sys::epoll_ctl(epfd, libc::EPOLL_CTL_ADD, fd, events, data);
    sys::epoll_ctl(epfd, libc::EPOLL_CTL_DEL, fd, 0, 0)?;
    let added = if chaos::refuses_watches() {
        Err(Errno(libc::ENOSPC))
    } else {
        add(new)
    };
    added.inspect_err(|_| {
        let _ = add(former);
    })
}

/// Moves every registration of a socket to the library. False, with all of them back in the kernel,
/// if one cannot be moved. The caller holds the state lock; the socket's mode is `Bound` already.
pub(crate) fn bind_all(socket: &'static Socket, chan: &Chan) -> bool {
    for interest in of_socket(socket) {
        let Some(set) = interest.set() else { continue };
        let Some(guard) = set.lock.lock() else {
            return false;
        };
        let epfd = set.any_number();
        let bound = match epfd {
            Some(epfd) if !set.is_foreign() => {
                bind_one(epfd, set, interest, chan, libc::EPOLL_CTL_MOD).is_ok()
            }
            _ => false,
        };
        set.wake_others(&guard);
        drop(guard);
        if !bound {
            unbind_all(socket, chan);
            return false;
        }
    }
    true
}

/// Gives every registration of a socket back to the kernel, as the application asked for it. The
/// caller holds the state lock.
pub(crate) fn unbind_all(socket: &'static Socket, chan: &Chan) {
    let mut at = socket.interests.load(Ordering::Relaxed);
    // SAFETY: list members are pool records; the next one is read before this one may go.
    while let Some(interest) = unsafe { at.as_ref() } {
        at = interest.next_of_socket.load(Ordering::Relaxed);
        let Some(set) = interest.set() else { continue };
        let Some(guard) = set.lock.lock() else {
            continue;
        };
        if !interest.is_bound() {
            continue;
        }
        detach(set, interest, chan);
        let active = interest.active.load(Ordering::Relaxed);
        // An orphan's number may refer to another connection.
        let keeps = interest.is_orphan()
            || set
                .any_number()
                .is_some_and(|epfd| !return_to_kernel(epfd, interest, active));
        interest.kept.store(keeps, Ordering::Relaxed);
        if keeps {
            set.queue(interest);
        } else if active {
            set.remove_from_queue(interest);
        } else {
            remove(set, socket, interest);
        }
        set.wake_others(&guard);
    }
}

/// Queues every registration of a bound socket for another check. The caller holds the state lock.
pub(crate) fn look_again(socket: &Socket) {
    for interest in of_socket(socket).filter(|i| i.is_bound()) {
        let Some(set) = interest.set() else { continue };
        let Some(guard) = set.lock.lock() else {
            continue;
        };
        set.queue(interest);
        set.wake_others(&guard);
    }
}

/// Makes the kernel's registration what the application asked for. A fired one-shot is removed
/// until the application arms it again: the kernel reports HUP and ERR even for an empty mask, and
/// an application that gets a second event of a one-shot serves the connection twice. False if it
/// still is the watch of the anchor.
fn return_to_kernel(epfd: Fd, interest: &Interest, active: bool) -> bool {
    let fd = interest.fd.load(Ordering::Relaxed);
    let spent = active && interest.spent.load(Ordering::Relaxed);
    if !active || spent {
        let gone = sys::epoll_ctl(epfd, libc::EPOLL_CTL_DEL, fd, 0, 0).is_ok();
        interest.parked.store(spent && gone, Ordering::Relaxed);
        return true;
    }
    interest.parked.store(false, Ordering::Relaxed);
    let (events, data) = asked_for(interest);
    if events & EXCLUSIVE != 0 {
        // Include room to send: it is not asked for later.
        let all = ANCHOR | libc::EPOLLOUT.cast_unsigned();
        let watch = (all, core::ptr::from_ref(interest) as u64);
        return make_anew(epfd, fd, watch, (events, data)).is_ok();
    }
    let _ = sys::epoll_ctl(epfd, libc::EPOLL_CTL_MOD, fd, events, data);
    true
}

/// Removes a registration from its set's segment. The caller holds both locks.
fn detach(set: &EpollSet, interest: &Interest, chan: &Chan) {
    let index = interest.segment.swap(NO_SEGMENT, Ordering::Relaxed) as usize;
    let Some(entry) = set.segments().get(index) else {
        return;
    };
    let slot = SlotIndex::stored(interest.slot.load(Ordering::Relaxed));
    if entry.take_out(slot, interest) && entry.is_own() {
        let wait_slot = entry.wait_slot.load(Ordering::Relaxed) as usize;
        chan.ours().rx_wait_slots.leave(wait_slot);
        chan.ours().tx_wait_slots.leave(wait_slot);
    }
    if entry.members.load(Ordering::Relaxed) == 0 {
        set.stale.store(true, Ordering::Relaxed);
    }
}

/// Removes the registrations of a connection whose last descriptor is closed. The kernel drops its
/// own by itself.
pub(crate) fn forget(socket: &'static Socket) {
    let Some(_state) = socket.state_lock.lock() else {
        return;
    };
    let chan = socket.is_bound_or_closing_bound();
    forget_where(socket, chan.as_ref(), |_| true);
}

/// Marks the registrations of a closed descriptor whose connection has others: they stay in force.
pub(crate) fn orphan(socket: &'static Socket, fd: Fd) {
    let Some(_state) = socket.state_lock.lock() else {
        return;
    };
    for interest in of_socket(socket).filter(|i| i.fd.load(Ordering::Relaxed) == fd) {
        interest.orphan.store(true, Ordering::Release); // For `Interest::anchor`.
    }
}

pub(super) fn forget_set(socket: &'static Socket, set: &EpollSet) {
    let Some(_state) = socket.state_lock.lock() else {
        return;
    };
    let chan = socket.is_bound_or_closing_bound();
    forget_where(socket, chan.as_ref(), |i| {
        core::ptr::eq(i.set.load(Ordering::Relaxed), set)
    });
}

fn forget_where(socket: &'static Socket, chan: Option<&Chan>, which: impl Fn(&Interest) -> bool) {
    let mut at = socket.interests.load(Ordering::Relaxed);
    // SAFETY: list members are pool records; the next one is read before this one goes.
    while let Some(interest) = unsafe { at.as_ref() } {
        at = interest.next_of_socket.load(Ordering::Relaxed);
        if !which(interest) {
            continue;
        }
        let Some(set) = interest.set() else {
            unlink(socket, interest);
            continue;
        };
        let Some(_guard) = set.lock.lock() else {
            // In a signal handler above the lock's holder. The record stays in the set and must not
            // act for the connection that gets the socket's record next.
            interest
                .socket
                .store(core::ptr::null_mut(), Ordering::Relaxed);
            continue;
        };
        if let Some(chan) = chan.filter(|_| interest.is_bound()) {
            detach(set, interest, chan);
        }
        remove(set, socket, interest);
        set.sweep();
    }
}

impl Socket {
    /// The channel, if the socket has one, also during its close.
    pub(crate) fn is_bound_or_closing_bound(&self) -> Option<Chan> {
        let plain = self.mode.get() == Mode::Plain;
        let proposed = self.phase.get() == Phase::Proposed;
        if plain || (proposed && !self.is_bound()) {
            None
        } else {
            Chan::of(self)
        }
    }
}

/// Adds room to send to the kernel's watch. A second MOD would make the kernel also report bytes
/// that were there all the time, and a thread that waits only for room would never sleep.
pub(crate) fn watch_for_room(set: &EpollSet, interest: &Interest, fd: Fd) {
    if interest.is_orphan() || interest.for_room.load(Ordering::Relaxed) {
        return; // An orphan's number may refer to another connection by now.
    }
    let data = core::ptr::from_ref(interest) as u64;
    let events = ANCHOR | libc::EPOLLOUT.cast_unsigned();
    if let Some(epfd) = set.any_number() {
        let watched = sys::epoll_ctl(epfd, libc::EPOLL_CTL_MOD, fd, events, data).is_ok();
        interest.for_room.store(watched, Ordering::Relaxed);
    }
}

/// Makes the kernel report when TCP has room again, for a bound connection's edge-triggered
/// registrations, which are not checked until an event comes.
pub(crate) fn watch_edges_for_room(socket: &'static Socket) {
    let Some(_state) = socket.state_lock.lock() else {
        return;
    };
    let waits = |i: &Interest| {
        let events = i.events.load(Ordering::Relaxed);
        events & EDGE != 0 && events & libc::EPOLLOUT.cast_unsigned() != 0 && i.is_bound()
    };
    for interest in of_socket(socket).filter(|i| waits(i)) {
        if let Some(set) = interest.set() {
            watch_for_room(set, interest, interest.anchor(socket));
        }
    }
}

/// Asks the peer to wake us for the events of a registration.
pub(crate) fn arm(interest: &Interest, chan: &Chan) {
    readiness::arm(chan, wanted(interest));
}

/// The poll events that a registration asks for.
pub(crate) fn wanted(interest: &Interest) -> i16 {
    i16::try_from(interest.events.load(Ordering::Relaxed) & 0x7fff).unwrap_or(0)
}
