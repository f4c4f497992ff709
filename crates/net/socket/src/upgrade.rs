//! Upgrades: the steps of the rendezvous by which a connection gets its channel.
//!
//! Each step runs inside a call of the application on the connection, never waits, and leaves the
//! connection on TCP if any condition is not met. The switch itself happens later, in `send` and
//! `recv`, for each direction separately.

mod checks;

use checks::{Totals, is_tcp, may_wait, totals, waits_unseen};
pub(crate) use checks::{leave_for_unseen_wait, read_unsent_mark, waits_for_more_than_a_byte};

use crate::chan::Chan;
use crate::links::{self, Known, Link};
use crate::sock::{self, Socket};
use crate::state::{Mode, ModeEvent, Phase, PhaseEvent};
use crate::{deep_bound, epoll, fork, offers, poll, rt, settings, uring};
use core::sync::atomic::Ordering;
use saiga_channel::layout::{START_SHIFT, Side, SlotIndex};
use saiga_channel::rendezvous::{self, Credentials, Proposal, Refusal};
use saiga_channel::segment::Segment;
use saiga_channel::sys::{self, Errno, Fd};
use saiga_channel::tuple::Tuple;
use saiga_status::{Reason, State};

/// Messages for which a visitor may keep us waiting, or we the visitor.
const VISITOR_MESSAGES: u32 = 256;
/// Visitors of other users that one check of an offer rejects.
const VISITORS: u32 = 4;
/// TCP_ESTABLISHED of `include/net/tcp_states.h`.
const ESTABLISHED: u8 = 1;
/// The user id of users without one in this user namespace (`/proc/sys/kernel/overflowuid`).
const OVERFLOW_UID: u32 = 65_534;

/// Takes the next step on a plain, pinned socket. True when it is bound now.
pub(crate) fn step(fd: Fd, socket: &'static Socket) -> bool {
    // A child made by clone(2) without libc has our records, but does not know of slots that we
    // have allocated since.
    if !rt::in_own_process() {
        return false;
    }
    let sandboxed = rt::SANDBOXED.load(Ordering::Relaxed);
    if socket.phase.get() == Phase::Cold && !sandboxed {
        uring::look_again();
    }
    let Some(_guard) = socket.state_lock.try_lock() else {
        return false;
    };
    if socket.mode.get() != Mode::Plain {
        return socket.is_bound();
    }
    if epoll::is_locked_below(socket) {
        return false;
    }
    let phase = socket.phase.get();
    if phase.is_under_way() && !rt::ENABLED.load(Ordering::Acquire) {
        abandon(socket);
        socket.back_off(Reason::KillSwitch);
        return false;
    }
    match phase {
        Phase::Cold => begin(fd, socket),
        Phase::Offering => look_for_visitor(fd, socket),
        Phase::Visited => hear_visitor(fd, socket),
        Phase::Proposed => look_for_answer(fd, socket),
        Phase::Never => {}
    }
    socket.is_bound()
}

/// Checks every condition of this end, sets our mark, searches for the other end's mark, then
/// offers or proposes.
///
/// The end that comes first finds no mark, and leaves its own for the other end. A peer without
/// Saiga never gets an offer.
fn begin(fd: Fd, socket: &'static Socket) {
    settings::look_again();
    if !rt::ENABLED.load(Ordering::Acquire) {
        return socket.back_off(Reason::KillSwitch);
    }
    if rt::SANDBOXED.load(Ordering::Relaxed) || !may_wait() {
        return socket.never(fd, Reason::Sandboxed);
    }
    if uring::is_in_the_way() {
        return socket.back_off(Reason::IoUring);
    }
    if deep_bound::is_in_the_way() {
        return socket.back_off(Reason::DeepBound);
    }
    if rt::NAMESPACE_LEFT.load(Ordering::Relaxed) {
        return socket.never(fd, Reason::Namespace);
    }
    if waits_unseen(fd, socket) {
        return socket.back_off(Reason::WaitsUnseen);
    }
    let first = !socket.marked.load(Ordering::Relaxed);
    if first && !is_tcp(fd) {
        return socket.never(fd, Reason::NotTcp);
    }
    if first && waits_for_more_than_a_byte(fd) {
        return socket.never(fd, Reason::SocketOption);
    }
    let Some(tuple) = Tuple::of(fd) else {
        return socket.back_off(Reason::NotEnoughMessages);
    };
    if settings::is_port_off(tuple.local.port) || settings::is_port_off(tuple.remote.port) {
        return socket.never(fd, Reason::DeniedBySettings);
    }
    if first && !totals_agree(fd, socket) {
        return;
    }
    socket.mark(fd);
    socket.epoch.store(fork::forks(), Ordering::Relaxed);
    if let Err(reason) = find_peer(socket, &tuple) {
        return if matches!(reason, Reason::PeerRemote | Reason::PeerUnknown) {
            socket.never(fd, reason)
        } else {
            socket.back_off(reason)
        };
    }
    if !first && !totals_agree(fd, socket) {
        return;
    }
    if rt::open_ringer().is_err() {
        return socket.back_off(Reason::OutOfDescriptors);
    }
    if tuple.offers() {
        make_offer(socket, &tuple)
    } else {
        propose(socket, &tuple, false)
    }
}

/// Whether every byte so far went through the hooks; if not, the attempt has ended.
fn totals_agree(fd: Fd, socket: &'static Socket) -> bool {
    match totals(fd, socket) {
        Totals::Agree => return true,
        // Another thread inside a call makes the totals differ for a moment.
        Totals::Differ if socket.pins.load(Ordering::SeqCst) <= 1 => {
            socket.never(fd, Reason::MovedOutside);
        }
        Totals::Differ | Totals::Unknown => socket.back_off(Reason::MovedOutside),
    }
    false
}

/// Compares the totals once more before binding if there was a fork since the attempt began:
/// another process that has the connection may have used it. If so, the attempt has ended.
fn still_agrees(fd: Fd, socket: &'static Socket) -> bool {
    if !socket.maybe_shared() {
        return true;
    }
    match totals(fd, socket) {
        Totals::Agree => return true,
        Totals::Differ => {
            abandon(socket);
            socket.never(fd, Reason::ForkShared);
        }
        Totals::Unknown => {
            abandon(socket);
            socket.back_off(Reason::ForkShared);
        }
    }
    false
}

/// Checks that the other end is an established socket of this network namespace, of a known user,
/// and marked by its process.
fn find_peer(socket: &Socket, tuple: &Tuple) -> Result<(), Reason> {
    match rt::look_up(&tuple.reversed()) {
        Ok(f) if f.state != ESTABLISHED => Err(Reason::HalfClosed),
        Ok(f) if f.uid == OVERFLOW_UID => Err(Reason::DifferentUser),
        Ok(f) if f.marked == Some(false) => Err(Reason::PeerNotSaiga),
        Ok(f) => {
            socket.peer_uid.store(f.uid, Ordering::Relaxed);
            if f.marked.is_some() && !socket.peer_marked.swap(true, Ordering::Relaxed) {
                // From here on both ends search for each other: earlier pauses do not count.
                socket.pace.begin(socket.messages.load(Ordering::Relaxed));
            }
            Ok(())
        }
        // Between two sockets of this host, each end must be found under the reversed addresses.
        Err(Errno(libc::ENOENT)) if tuple.is_within_host() => Err(Reason::PeerUnknown),
        Err(Errno(libc::ENOENT)) => Err(Reason::PeerRemote),
        Err(Errno(libc::EMFILE | libc::ENFILE)) => Err(Reason::OutOfDescriptors),
        Err(Errno(libc::EBADF | libc::ENOTSOCK)) => Err(Reason::HiddenDescriptorLost),
        Err(_) => Err(Reason::DeniedBySystem),
    }
}

fn make_offer(socket: &'static Socket, tuple: &Tuple) {
    if !offers::take(socket, end_offer) {
        return socket.back_off(Reason::OutOfDescriptors);
    }
    match rendezvous::offer(tuple, rt::floor()) {
        Ok(listener) => {
            rt::keep(&socket.rendezvous, listener);
            socket.phase.transition(PhaseEvent::Offer);
            socket.pause();
            socket.show(State::Offering, Reason::None);
        }
        Err(e) => {
            offers::give_back(socket);
            socket.back_off(if e == Errno(libc::EADDRINUSE) {
                Reason::IdentityUnproven
            } else {
                Reason::OutOfDescriptors
            });
        }
    }
}

/// Ends the offer of a connection whose entry another one needs. False while its owner is using it.
fn end_offer(socket: &'static Socket) -> bool {
    let Some(_guard) = socket.state_lock.try_lock() else {
        return false;
    };
    if socket.phase.get() == Phase::Offering {
        give_up(socket, Reason::OfferTimedOut);
    }
    true
}

/// Accepts a visitor of our offer, if there is one.
fn look_for_visitor(fd: Fd, socket: &'static Socket) {
    let listener = socket.rendezvous.load(Ordering::Relaxed);
    let uid = socket.peer_uid.load(Ordering::Relaxed);
    for _ in 0..VISITORS {
        let Ok(visitor) = rendezvous::accept(listener, rt::floor()) else {
            break;
        };
        if rendezvous::credentials(visitor).is_ok_and(|c| c.uid == uid) {
            replace_rendezvous(socket, visitor);
            socket.phase.transition(PhaseEvent::Visit);
            let end = socket.messages.load(Ordering::Relaxed);
            let end = end.saturating_add(VISITOR_MESSAGES);
            socket.visit_ends.store(end, Ordering::Relaxed);
            return hear_visitor(fd, socket);
        }
        // Any process of this network namespace can connect here. The offer stands.
        sys::close(visitor);
        rt::header().count_failure(Reason::DifferentUser);
    }
    socket.pause();
}

/// Whether a visitor's time is over.
fn visitor_timed_out(socket: &Socket) -> bool {
    socket.messages.load(Ordering::Relaxed) >= socket.visit_ends.load(Ordering::Relaxed)
}

/// Reads the visitor's proposal and binds the socket to the proposed slot.
fn hear_visitor(fd: Fd, socket: &'static Socket) {
    let visitor = socket.rendezvous.load(Ordering::Relaxed);
    if socket.pins.load(Ordering::SeqCst) > 1 || poll::has_pollers() {
        // A thread is in the kernel on this socket: it could not be woken for a ring.
        return if visitor_timed_out(socket) {
            give_up(socket, Reason::OfferTimedOut)
        } else {
            socket.step_soon()
        };
    }
    if waits_unseen(fd, socket) {
        rendezvous::refuse(visitor, Refusal::No);
        return give_up(socket, Reason::WaitsUnseen);
    }
    if !still_agrees(fd, socket) {
        return;
    }
    let (proposal, passed) = match rendezvous::receive(visitor) {
        Ok(heard) => heard,
        Err(Errno(libc::EAGAIN)) if !visitor_timed_out(socket) => return socket.step_soon(),
        Err(Errno(libc::EPROTONOSUPPORT)) => {
            rendezvous::refuse(visitor, Refusal::Version);
            return give_up(socket, Reason::VersionMismatch);
        }
        Err(_) => return give_up(socket, Reason::HandshakeFailed),
    };
    match take_proposal(fd, visitor, &proposal, passed) {
        Ok((link, slot)) => {
            if bind(fd, socket, link, slot) {
                replace_rendezvous(socket, -1);
            } else {
                refuse_after_agreement(socket, link, slot);
                give_up(socket, Reason::EpollUnknown);
            }
        }
        Err((refusal, reason)) => {
            rendezvous::refuse(visitor, refusal);
            give_up(socket, reason);
        }
    }
}

/// Ends a channel that was agreed to and cannot be used: both rings end before their first byte, so
/// the peer finds itself on TCP again.
fn refuse_after_agreement(socket: &Socket, link: &'static Link, slot: SlotIndex) {
    socket.link.store(core::ptr::null_mut(), Ordering::Release);
    if let Some(chan) = Chan::at(link, slot) {
        chan.rx_ring().acknowledge();
        chan.freeze_tx();
        chan.freeze_rx();
        chan.leave();
    }
    // A thread that found the socket bound for a moment may still access the slot: then the segment
    // stays mapped. The thread's next call goes to the kernel.
    if socket.pins.load(Ordering::SeqCst) <= 1 {
        links::leave(link);
    }
}

/// Finds or maps the proposed segment and agrees to the slot.
fn take_proposal(
    fd: Fd,
    visitor: Fd,
    proposal: &Proposal,
    passed: Option<Fd>,
) -> Result<(&'static Link, SlotIndex), (Refusal, Reason)> {
    if Tuple::of(fd).map(|t| t.key()) != Some(proposal.key) {
        if let Some(extra) = passed {
            sys::close(extra);
        }
        return Err((Refusal::No, Reason::HandshakeFailed));
    }
    let peer =
        rendezvous::credentials(visitor).map_err(|_| (Refusal::No, Reason::IdentityUnproven))?;
    let link = find_or_adopt(peer, proposal.segment, passed)?;
    let slot = SlotIndex::new(proposal.slot);
    let chan = slot.and_then(|slot| Chan::at(link, slot));
    match chan.filter(|chan| accept(chan, &proposal.key)) {
        Some(chan) => Ok((link, chan.index)),
        None => {
            links::leave(link);
            Err((Refusal::No, Reason::HandshakeFailed))
        }
    }
}

/// The segment that a proposal names: known already, or sent with the proposal.
fn find_or_adopt(
    peer: Credentials,
    id: u64,
    passed: Option<Fd>,
) -> Result<&'static Link, (Refusal, Reason)> {
    let unknown = (Refusal::UnknownSegment, Reason::HandshakeFailed);
    let known = links::find(peer, id);
    let Some(memfd) = passed else {
        return match known {
            Known::Ours(link) => Ok(link),
            Known::Shared | Known::No => Err(unknown),
        };
    };
    let outcome = match known {
        Known::Ours(link) => Some(Ok(link)),
        Known::Shared => Some(Err(unknown)),
        Known::No if !links::may_adopt(peer) => Some(Err((Refusal::No, Reason::PeerExcess))),
        Known::No => None,
    };
    if let Some(outcome) = outcome {
        sys::close(memfd);
        return outcome;
    }
    if links::prepare().is_err() {
        sys::close(memfd);
        return Err(unknown);
    }
    let segment = Segment::adopt(memfd, rt::floor()).map_err(|_| unknown)?;
    match links::adopt(segment, peer) {
        Known::Ours(link) => Ok(link),
        Known::Shared | Known::No => Err(unknown),
    }
}

/// Connects to the other end's offer and proposes a slot.
fn propose(socket: &'static Socket, tuple: &Tuple, fresh: bool) {
    let visitor = match rendezvous::connect(tuple, rt::floor()) {
        Ok(fd) => fd,
        Err(Errno(libc::ECONNREFUSED)) if !socket.peer_marked.load(Ordering::Relaxed) => {
            return socket.back_off(Reason::PeerNotSaiga);
        }
        Err(Errno(libc::ECONNREFUSED | libc::EAGAIN)) => {
            return socket.back_off(Reason::OfferTimedOut);
        }
        Err(Errno(libc::EMFILE | libc::ENFILE)) => {
            return socket.back_off(Reason::OutOfDescriptors);
        }
        Err(_) => return socket.back_off(Reason::DeniedBySystem),
    };
    replace_rendezvous(socket, visitor);
    let peer = match rendezvous::credentials(visitor) {
        Ok(c) if c.uid == socket.peer_uid.load(Ordering::Relaxed) => c,
        _ => return give_up(socket, Reason::DifferentUser),
    };
    match send_proposal(socket, tuple, visitor, peer, fresh) {
        Ok(()) => {
            socket.phase.transition(PhaseEvent::Propose);
            socket.pause();
            socket.show(State::Connecting, Reason::None);
        }
        Err(Errno(libc::EFBIG)) => give_up(socket, Reason::FileSizeLimit),
        Err(Errno(libc::EMFILE | libc::ENFILE)) => give_up(socket, Reason::OutOfDescriptors),
        Err(_) => give_up(socket, Reason::OutOfMemory),
    }
}

fn send_proposal(
    socket: &'static Socket,
    tuple: &Tuple,
    visitor: Fd,
    peer: Credentials,
    fresh: bool,
) -> Result<(), Errno> {
    let (link, slot, new) = links::propose_slot(peer, fresh)?;
    let chan = Chan::at(link, slot).ok_or(Errno(libc::ENOMEM))?;
    let sent = chan.segment.populate_start(slot).and_then(|()| {
        prepare_slot(&chan);
        chan.slot().agreement.request(&tuple.key());
        let proposal = Proposal::new(tuple, chan.segment.id(), slot.number(), rt::max_shift());
        rendezvous::propose(visitor, &proposal, new.then(|| chan.segment.fd()))
    });
    if let Err(e) = sent {
        links::cancel_slot(link, slot);
        return Err(e);
    }
    set_channel(socket, link, slot);
    Ok(())
}

/// Stores the channel that the socket has or will have. The slot first: a thread that finds the
/// link finds the slot, too.
fn set_channel(socket: &Socket, link: &'static Link, slot: SlotIndex) {
    socket.slot.store(slot.number(), Ordering::Relaxed);
    let link = core::ptr::from_ref(link).cast_mut();
    socket.link.store(link, Ordering::Release);
}

/// Initialises a slot's shared words for a new channel.
fn prepare_slot(chan: &Chan) {
    let slot = chan.slot();
    for ring in &slot.rings {
        ring.reset(START_SHIFT);
    }
    for side in &slot.sides {
        for word in [&side.open, &side.receiving, &side.sends_tcp] {
            word.store(0, Ordering::Relaxed);
        }
        side.cpu.store(u32::MAX, Ordering::Relaxed);
        side.rx_wait_slots.clear();
        side.tx_wait_slots.clear();
    }
    chan.own().begin();
}

/// Agrees to a slot that the peer has proposed for the connection `key`. False if the slot is not,
/// or no longer, meant for this connection, or another connection of this process uses it.
fn accept(chan: &Chan, key: &[u8; 36]) -> bool {
    if chan.segment.side != Side(1) || !chan.own().claim() {
        return false;
    }
    chan.own().begin();
    let opened = chan.segment.open_slot(chan.index).is_ok();
    let agreed = opened && chan.slot().agreement.accept(key);
    if !agreed {
        chan.own().unclaim();
    }
    agreed
}

/// Checks whether the other end has agreed.
fn look_for_answer(fd: Fd, socket: &'static Socket) {
    let Some(chan) = Chan::of(socket) else {
        return give_up(socket, Reason::Internal);
    };
    if chan.slot().agreement.is_accepted() {
        chan.link.note_delivered();
        if socket.pins.load(Ordering::SeqCst) > 1 {
            return;
        }
        if waits_unseen(fd, socket) {
            withdraw(socket, &chan);
            return give_up(socket, Reason::WaitsUnseen);
        }
        if !still_agrees(fd, socket) {
            return;
        }
        if bind(fd, socket, chan.link, chan.index) {
            replace_rendezvous(socket, -1);
        }
        return;
    }
    let now = socket.messages.load(Ordering::Relaxed);
    if !socket.pace.is_due(now) {
        return; // A refusal costs a system call to see, and is not urgent.
    }
    match rendezvous::refusal(socket.rendezvous.load(Ordering::Relaxed)) {
        None => socket.pause(),
        Some(_) if chan.slot().agreement.is_accepted() => {}
        Some(refusal) => {
            if refusal == Refusal::UnknownSegment {
                chan.link.retire();
            }
            withdraw(socket, &chan);
            match (refusal, Tuple::of(fd)) {
                (Refusal::UnknownSegment, Some(tuple)) => propose(socket, &tuple, true),
                (Refusal::Version, _) => give_up(socket, Reason::VersionMismatch),
                _ => give_up(socket, Reason::PeerDeclined),
            }
        }
    }
}

/// Withdraws a proposal that was not accepted.
fn withdraw(socket: &Socket, chan: &Chan) {
    let cancelled = chan.slot().agreement.cancel();
    socket.link.store(core::ptr::null_mut(), Ordering::Release);
    if cancelled {
        links::cancel_slot(chan.link, chan.index);
    } else {
        refuse_after_agreement(socket, chan.link, chan.index); // Accepted at the last moment.
    }
}

/// Ends an attempt. The connection stays on TCP and tries again later.
fn give_up(socket: &'static Socket, reason: Reason) {
    replace_rendezvous(socket, -1);
    socket.back_off(reason);
}

/// Ends the current attempt, if any, of a socket that closes or must not be upgraded.
pub(crate) fn abandon(socket: &'static Socket) {
    if socket.phase.get() == Phase::Proposed
        && let Some(chan) = Chan::of(socket)
    {
        withdraw(socket, &chan);
    }
    replace_rendezvous(socket, -1);
}

/// In a forked child: a current attempt is the parent's, and so is the slot that it proposed.
pub(crate) fn forked(socket: &'static Socket) {
    if !socket.phase.get().is_under_way() {
        return;
    }
    let link = socket.link.swap(core::ptr::null_mut(), Ordering::AcqRel);
    if let Some(link) = links::of(link) {
        links::leave(link);
    }
    replace_rendezvous(socket, -1);
    socket.phase.transition(PhaseEvent::Retry);
    socket.step_soon();
}

fn replace_rendezvous(socket: &'static Socket, fd: Fd) {
    let gone = socket.rendezvous.swap(-1, Ordering::Relaxed);
    if gone >= 0 {
        rt::unhide_and_close(gone);
        offers::give_back(socket);
    }
    if fd >= 0 {
        rt::keep(&socket.rendezvous, fd);
    }
}

/// Binds the socket: from here every call uses the channel. The caller holds the state lock and a
/// pin. False if a thread is inside the kernel on this socket, or the registration in an epoll set
/// cannot be moved.
fn bind(fd: Fd, socket: &'static Socket, link: &'static Link, slot: SlotIndex) -> bool {
    let Some(chan) = Chan::at(link, slot) else {
        return false;
    };
    read_unsent_mark(fd, socket);
    set_channel(socket, link, slot);
    socket.mode.transition(ModeEvent::Bind);
    let alone = socket.pins.load(Ordering::SeqCst) == 1 && !poll::has_pollers();
    // An object may have been loaded since the first step.
    if !alone || deep_bound::is_in_the_way() || !epoll::bind_all(socket, &chan) {
        socket.mode.transition(ModeEvent::Unbind);
        return false;
    }
    socket.phase.transition(PhaseEvent::Bind);
    socket.forget_end();
    socket.epoch.store(fork::forks(), Ordering::Relaxed);
    socket.cookie.store(sock::cookie(fd), Ordering::Relaxed);
    socket.quiet_at.store(u64::MAX, Ordering::Relaxed); // The first check finds it not idle.
    chan.publish_open();
    chan.publish_cpu();
    chan.rx_ring().set_ready();
    rt::header().upgrades.fetch_add(1, Ordering::Relaxed);
    rt::header().channels.fetch_add(1, Ordering::Relaxed);
    if let Some(entry) = rt::entry(socket.shown_as.load(Ordering::Relaxed)) {
        entry.peer_pid.store(link.peer_pid(), Ordering::Relaxed);
    }
    socket.show(State::Draining, Reason::None);
    true
}
