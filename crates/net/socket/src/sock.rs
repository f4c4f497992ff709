//! The record of one TCP connection (an open file description) in this process.
//!
//! While its [`Mode`] is `Plain`, calls pass to the kernel and are counted as evidence. While it is
//! `Bound`, the connection has a slot in a segment and every call goes through `recv`, `send` and
//! `readiness`. The descriptor stays the kernel's socket.

#![expect(unsafe_code, reason = "pointers to records of the pool")]

use crate::anchor_events::AnchorEvents;
use crate::epoll::Interest;
use crate::links::Link;
use crate::lock::Lock;
use crate::nonblock::NonBlock;
use crate::pace::Pace;
use crate::pool::{Pool, Record};
use crate::state::{Mode, ModeEvent, Phase, PhaseEvent};
use crate::thread;
use crate::{chaos, rt, table};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use saiga_channel::diag;
use saiga_channel::state::StateCell;
use saiga_channel::sys::{Errno, Fd};
use saiga_status::{Reason, State};

/// Connections that one process can track; further ones stay plain kernel sockets.
const SOCKETS: usize = 1 << 18;
static POOL: Pool<Socket, SOCKETS> = Pool::new();

/// Error of a call that found the socket bound but without a channel: an attempt to bind the socket
/// has just failed, so the kernel serves the call. The kernel returns the same error if there is no
/// connection.
pub(crate) const NOT_BOUND: Errno = Errno(libc::ENOTCONN);

/// How the connection was opened; decides what TCP_INFO's `bytes_acked` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// By accept(2).
    Accepted,
    /// By socket(2) and connect(2): the SYN counts as one acknowledged byte.
    Connected,
}

/// One connection's state; all fields are shared by the process's threads.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Socket {
    pub(crate) mode: StateCell<Mode>,
    pub(crate) phase: StateCell<Phase>,
    /// Whether accept(2) has returned the connection; see [`Origin`].
    pub(crate) accepted: AtomicBool,
    /// O_NONBLOCK, and whether the program waits where a hook sees it.
    pub(crate) nonblock: NonBlock,
    /// Callers inside a call on the socket, in the kernel or in a ring.
    pub(crate) pins: AtomicU32,
    /// Descriptors of this process that refer to the connection.
    pub(crate) refs: AtomicU32,
    /// Messages counted, in both directions.
    pub(crate) messages: AtomicU32,
    /// When the next step towards a channel is due.
    pub(crate) pace: Pace,
    /// Index of our latest offer among the process's.
    pub(crate) offer_entry: AtomicU32,
    /// Whether the kernel shows the other end our mark (this end uses Saiga).
    pub(crate) marked: AtomicBool,
    /// Whether the other end's mark was seen.
    pub(crate) peer_marked: AtomicBool,
    /// Bytes sent over TCP through the hooks.
    pub(crate) sent: AtomicU64,
    /// Bytes received over TCP through the hooks.
    pub(crate) received: AtomicU64,
    /// Segment, while `Bound` or `Proposed`.
    pub(crate) link: AtomicPtr<Link>,
    /// Slot in the segment.
    pub(crate) slot: AtomicU32,
    /// Message count at which the time of a visitor ends, while `Visited`.
    pub(crate) visit_ends: AtomicU32,
    /// Descriptor of the rendezvous; -1 if none. While `Offering` the listener, while `Visited` the
    /// connection that it accepted, while `Proposed` the connection to the other end's listener.
    pub(crate) rendezvous: AtomicI32,
    /// Our own copy of the descriptor while callers are inside a closed socket; -1 if none.
    pub(crate) own_copy: AtomicI32,
    /// The kernel's identifier of the socket (SO_COOKIE), known while bound.
    pub(crate) cookie: AtomicU64,
    /// User id of the owner of the peer's kernel socket.
    pub(crate) peer_uid: AtomicU32,
    /// Descriptor under which the status page shows the connection.
    pub(crate) shown_as: AtomicI32,
    /// Possible events of the anchor: FIN, reset, or bytes after a freeze.
    pub(crate) anchor_events: AnchorEvents,
    /// shutdown(SHUT_WR) was called here.
    pub(crate) tx_shut: AtomicBool,
    /// shutdown(SHUT_RD) was called here.
    pub(crate) rx_shut: AtomicBool,
    /// The library has reset the connection: the channel was invalid, or bytes could not be kept.
    pub(crate) aborted: AtomicBool,
    /// The peer died with bytes of ours unread, or the kernel has reported its reset only to the
    /// library. Bytes that the peer sent before can still be read.
    pub(crate) peer_died: AtomicBool,
    /// A barrier on all threads has followed the switch to our ring (`send::overtake`).
    pub(crate) switch_ordered: AtomicBool,
    /// A call has returned the error of the reset.
    pub(crate) reset_reported: AtomicBool,
    /// Empty reads in a row; every sixteenth checks the anchor and O_NONBLOCK.
    pub(crate) empty_reads: AtomicU32,
    /// Writes that found no room; every sixteenth checks O_NONBLOCK.
    pub(crate) full_writes: AtomicU32,
    /// Writes in a row that found unread bytes; every sixteenth checks the anchor.
    pub(crate) unread_writes: AtomicU32,
    /// Bytes written to the ring, as of the last idle check that found more than the one before.
    pub(crate) quiet_at: AtomicU64,
    /// When that check was (CLOCK_MONOTONIC, ns).
    pub(crate) quiet_since: AtomicU64,
    /// Bytes of the ring that this side writes, since it last grew or got memory again.
    pub(crate) lent: AtomicU64,
    /// Unread bytes of the ring at which the socket is not writable (TCP_NOTSENT_LOWAT), as of the
    /// last upgrade or change; 0: none.
    pub(crate) most_unread: AtomicU64,
    /// Fork epoch in which the connection was bound, or the last attempt began; older means
    /// possibly shared by fork.
    pub(crate) epoch: AtomicU32,
    /// Why this side ended the channel, as a [`Reason`]'s number; 0 if it did not.
    ended_for: AtomicU32,
    /// Guards phase changes, binding, and the list of interests.
    pub(crate) state_lock: Lock,
    /// Epoll registrations of this connection in this process.
    pub(crate) interests: AtomicPtr<Interest>,
    next_free: AtomicPtr<Socket>,
}

impl Record for Socket {
    fn next_free(&self) -> &AtomicPtr<Self> {
        &self.next_free
    }
}

impl PartialEq for Socket {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self, other)
    }
}

/// A caller inside a socket. The record is not reused while it exists.
#[derive(Debug)]
pub(crate) struct Pin(pub(crate) &'static Socket);

impl Drop for Pin {
    fn drop(&mut self) {
        let left = thread::drop_one(&self.0.pins);
        // Not inside again: a thread that closes the last descriptor pins the socket before.
        if left == 0
            && self.0.refs.load(Ordering::SeqCst) == 0
            && self.0.pins.load(Ordering::SeqCst) == 0
            && self.0.mode.transition(ModeEvent::Close).is_some()
        {
            crate::close::release(self.0);
        }
    }
}

fn zero(words: &[&AtomicU64]) {
    for word in words {
        word.store(0, Ordering::Relaxed);
    }
}

fn lower(flags: &[&AtomicBool]) {
    for flag in flags {
        flag.store(false, Ordering::Relaxed);
    }
}

impl Socket {
    /// A record for a new connection, shown as `fd`. `None` when all records are in use.
    pub(crate) fn open(fd: Fd, origin: Origin) -> Option<&'static Socket> {
        let s = POOL.take()?;
        s.reset(origin);
        s.shown_as.store(fd, Ordering::Relaxed);
        s.mode.transition(ModeEvent::Open);
        Some(s)
    }

    /// Every record, including free ones: their mode is `Closing`.
    pub(crate) fn all() -> impl Iterator<Item = &'static Socket> {
        POOL.all()
    }

    /// The record behind a pointer to a record; records are never unmapped.
    pub(crate) fn at(record: *mut Socket) -> Option<&'static Socket> {
        // SAFETY: null, or a record of the pool, which lives as long as the process.
        unsafe { record.as_ref() }
    }

    fn reset(&self, origin: Origin) {
        let Self {
            mode: _,
            phase,
            accepted,
            nonblock,
            // Zero, except for a thread that looked up the former connection and is still inside.
            pins: _,
            refs,
            messages,
            pace,
            offer_entry,
            marked,
            peer_marked,
            sent,
            received,
            link,
            slot,
            visit_ends,
            rendezvous,
            own_copy,
            cookie,
            peer_uid,
            shown_as: _,
            anchor_events,
            tx_shut,
            rx_shut,
            aborted,
            peer_died,
            switch_ordered: _,
            reset_reported,
            empty_reads,
            full_writes,
            unread_writes,
            quiet_at,
            quiet_since,
            lent,
            most_unread: _,
            epoch,
            ended_for: _,
            state_lock: _,
            interests,
            next_free: _,
        } = self;
        phase.transition(PhaseEvent::Open);
        accepted.store(origin == Origin::Accepted, Ordering::Relaxed);
        nonblock.forget();
        for zero in [
            messages,
            slot,
            visit_ends,
            offer_entry,
            peer_uid,
            empty_reads,
            full_writes,
            unread_writes,
            epoch,
        ] {
            zero.store(0, Ordering::Relaxed);
        }
        refs.store(1, Ordering::Relaxed);
        pace.reset(chaos::evidence(rt::evidence()));
        zero(&[sent, received, cookie]);
        zero(&[quiet_at, quiet_since, lent]);
        link.store(core::ptr::null_mut(), Ordering::Relaxed);
        rendezvous.store(-1, Ordering::Relaxed);
        own_copy.store(-1, Ordering::Relaxed);
        anchor_events.clear_all();
        lower(&[marked, peer_marked, tx_shut, rx_shut]);
        lower(&[aborted, peer_died, reset_reported]);
        self.forget_end();
        interests.store(core::ptr::null_mut(), Ordering::Relaxed);
    }

    /// Returns the record to the pool; no thread is inside and no descriptor refers to it.
    pub(crate) fn free(&'static self) {
        self.mode.transition(ModeEvent::Close);
        POOL.put(self);
    }

    /// Enters the socket, until the pin is dropped.
    pub(crate) fn pin(&'static self) -> Pin {
        thread::bump(&self.pins);
        Pin(self)
    }

    /// Enters the socket that was found behind `fd`. `None` if the number refers to another file by
    /// now: another thread has closed it, and the record may be another connection's. Once a caller
    /// is inside, the record cannot be reused.
    pub(crate) fn pin_as(&'static self, fd: Fd) -> Option<Pin> {
        let pin = self.pin();
        (table::socket(fd) == Some(self)).then_some(pin)
    }

    /// Whether a descriptor of the calling process refers to this connection.
    pub(crate) fn is_behind(&self, fd: Fd) -> bool {
        let known = self.cookie.load(Ordering::Relaxed);
        known != 0 && cookie(fd) == known
    }

    /// The descriptor to use for the anchor: the caller's, or our own copy if the application has
    /// closed its last descriptor under the caller.
    pub(crate) fn anchor(&self, fd: Fd) -> Fd {
        let copy = self.own_copy.load(Ordering::SeqCst);
        if copy >= 0 { copy } else { fd }
    }

    /// Whether the connection is reset, by the library or by the death of its peer.
    pub(crate) fn is_reset(&self) -> bool {
        self.aborted.load(Ordering::Relaxed) || self.peer_died.load(Ordering::Relaxed)
    }

    pub(crate) fn is_bound(&self) -> bool {
        self.mode.get() == Mode::Bound
    }

    /// Counts one message of evidence.
    pub(crate) fn count(&self) {
        let n = self.messages.load(Ordering::Relaxed).saturating_add(1);
        self.messages.store(n, Ordering::Relaxed);
    }

    /// Whether the next step towards a channel is due.
    pub(crate) fn step_due(&self) -> bool {
        match self.phase.get() {
            Phase::Never => false,
            Phase::Proposed => true, // The answer comes in shared memory: a check costs nothing.
            Phase::Cold | Phase::Offering | Phase::Visited => {
                self.pace.is_due(self.messages.load(Ordering::Relaxed))
            }
        }
    }

    /// Makes the next step due at the next message.
    pub(crate) fn step_soon(&self) {
        let now = self.messages.load(Ordering::Relaxed);
        self.pace.step_at(now.saturating_add(1));
    }

    /// Makes the next step due after a pause that grows.
    pub(crate) fn pause(&self) {
        self.pace.pause(self.messages.load(Ordering::Relaxed));
    }

    /// Keeps the connection on TCP for good.
    pub(crate) fn never(&self, fd: Fd, reason: Reason) {
        self.unmark(fd);
        self.phase.transition(PhaseEvent::Stop);
        rt::header().count_failure(reason);
        self.show(State::Never, reason);
    }

    /// Shows the other end, through the kernel, that this end uses Saiga and may be upgraded.
    pub(crate) fn mark(&self, fd: Fd) {
        if !self.marked.load(Ordering::Relaxed) && diag::mark(fd, true).is_ok() {
            self.marked.store(true, Ordering::Relaxed);
        }
    }

    /// Removes the mark: the other end need not search for this one any more.
    pub(crate) fn unmark(&self, fd: Fd) {
        if self.marked.swap(false, Ordering::Relaxed) {
            let _ = diag::mark(fd, false);
        }
    }

    /// Counts a failure and tries again after a pause that grows.
    pub(crate) fn back_off(&self, reason: Reason) {
        rt::header().count_failure(reason);
        self.begin_again(reason);
    }

    /// Returns to gathering evidence, unless another thread has put the connection on TCP for good.
    pub(crate) fn begin_again(&self, reason: Reason) {
        self.phase.transition(PhaseEvent::Retry);
        if self.phase.get() != Phase::Never {
            self.pause();
            self.show(State::Tracked, reason);
        }
    }

    /// Records why this side ends its channel; the first reason stays.
    pub(crate) fn note_end(&self, reason: Reason) {
        let (none, why) = (Reason::None as u32, reason as u32);
        let word = &self.ended_for;
        let _ = word.compare_exchange(none, why, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Why the channel has ended: this side's reason, or PeerAsked.
    pub(crate) fn end_reason(&self) -> Reason {
        let own = Reason::from_number(self.ended_for.load(Ordering::Relaxed));
        own.filter(|reason| *reason != Reason::None)
            .unwrap_or(Reason::PeerAsked)
    }

    /// Clears the reason, for a new channel.
    pub(crate) fn forget_end(&self) {
        self.switch_ordered.store(false, Ordering::Relaxed);
        self.ended_for.store(Reason::None as u32, Ordering::Relaxed);
    }

    /// Keeps an upgraded connection on TCP for good once its rings are empty.
    pub(crate) fn leave(&self, fd: Fd, reason: Reason) {
        self.note_end(reason);
        self.unmark(fd);
        if self.phase.transition(PhaseEvent::Stop).is_some() {
            rt::header().count_downgrade(reason);
        }
        self.show(State::Downgraded, reason);
    }

    /// Shows a state on the status page; a reset connection stays shown as reset.
    pub(crate) fn show(&self, state: State, reason: Reason) {
        if !self.is_reset() {
            rt::show(self.shown_as.load(Ordering::Relaxed), state, reason);
        }
    }

    /// Whether another process may have the connection open, too: it was bound before a fork.
    pub(crate) fn maybe_shared(&self) -> bool {
        self.epoch.load(Ordering::Relaxed) != crate::fork::forks()
    }
}

/// Increments a counter and returns it; lost updates do not matter.
pub(crate) fn count_one(counter: &AtomicU32) -> u32 {
    let n = counter.load(Ordering::Relaxed).wrapping_add(1);
    counter.store(n, Ordering::Relaxed);
    n
}

/// The kernel's identifier of a socket (`man 7 socket`, SO_COOKIE); 0 when it has none.
pub(crate) fn cookie(fd: Fd) -> u64 {
    let mut value = 0u64;
    let _ = saiga_channel::sys::getsockopt(fd, libc::SOL_SOCKET, libc::SO_COOKIE, &mut value);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_closed_after_the_lookup_is_not_entered() {
        assert!(table::init());
        let first = Socket::open(70, Origin::Connected).expect("there is room");
        assert!(table::set_socket(70, first));
        let found = table::socket(70).expect("it was put there");
        let inside = found.pin_as(70).expect("it is still there");
        table::clear(70);
        assert!(found.pin_as(70).is_none(), "closed");
        let second = Socket::open(70, Origin::Connected).expect("there is room");
        assert!(table::set_socket(70, second));
        assert!(found.pin_as(70).is_none(), "another connection's number");
        assert_eq!(
            first.pins.load(Ordering::SeqCst),
            1,
            "the first thread is still inside"
        );
        drop(inside);
        assert_eq!(first.pins.load(Ordering::SeqCst), 0);
    }
}
