//! Sending on a bound socket: to TCP until the peer is ready, then to the ring, and to TCP again
//! after the ring has ended.
//!
//! Order is the invariant: bytes may follow by TCP only after the peer has acknowledged the switch
//! to the ring, or cannot miss it; recalled bytes are sent again by TCP before anything else.

use crate::chan::Chan;
use crate::gather::Gather;
use crate::signals_blocked::SignalsBlocked;
use crate::sock::{NOT_BOUND, Socket, count_one};
use crate::wait::{Until, Wait, WaitFor};
use crate::{clock, epoll, kernel, reset, tcp_use};
use core::sync::atomic::Ordering;
use saiga_channel::barriers;
use saiga_channel::direction::{TxEvent, TxMode};
use saiga_channel::layout::STRIDE_SHIFT;
use saiga_channel::ring::{Got, Put};
use saiga_channel::sys::{self, Errno, Fd, Sys};
use saiga_status::{Reason, State};

/// Outcome of one attempt that did not wait.
enum Try {
    Bytes(usize),
    /// No space now.
    Full,
    /// The mode changed: try again at once.
    Again,
}

/// Whether a send waits for room.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Blocking {
    Never,
    /// Unless O_NONBLOCK is set.
    AsDescriptor,
    Always,
}

impl Blocking {
    fn waits(self, fd: Fd, socket: &Socket, wait: &Wait) -> bool {
        match self {
            Blocking::Never => false,
            Blocking::AsDescriptor => {
                wait.has_begun() || !socket.nonblock.refuses(fd, count_one(&socket.full_writes))
            }
            Blocking::Always => true,
        }
    }

    fn until(self) -> Until {
        match self {
            Blocking::Never | Blocking::AsDescriptor => Until::NonblockSet,
            Blocking::Always => Until::TimeOut,
        }
    }
}

/// `send(2)` of several parts on a bound, pinned socket.
///
/// # Errors
/// As `man 2 send`: EAGAIN, EPIPE (with SIGPIPE from the kernel), ECONNRESET, EINTR, ...
pub(crate) fn send(fd: Fd, socket: &'static Socket, what: Gather<'_>, flags: i32) -> Sys<usize> {
    let blocking = if flags & libc::MSG_DONTWAIT != 0 {
        Blocking::Never
    } else {
        Blocking::AsDescriptor
    };
    send_as(fd, socket, what, flags, blocking)
}

/// As [`send`], but waits also on a nonblocking descriptor.
///
/// # Errors
/// As [`send`], except EAGAIN.
pub(crate) fn send_waiting(fd: Fd, socket: &'static Socket, what: Gather<'_>) -> Sys<usize> {
    send_as(fd, socket, what, 0, Blocking::Always)
}

/// Sends all of `bytes` on a socket that is not bound, waiting for room.
///
/// # Errors
/// As `send(2)`, except EAGAIN.
pub(crate) fn plain_waiting(fd: Fd, socket: &'static Socket, bytes: &[u8]) -> Sys<usize> {
    let mut done = 0;
    while done < bytes.len() {
        match kernel::send(fd, bytes[done..].into(), libc::MSG_DONTWAIT) {
            Ok(n) => {
                socket.sent.fetch_add(n as u64, Ordering::Relaxed);
                done += n;
            }
            Err(Errno(libc::EAGAIN)) => {
                let mut room = [libc::pollfd {
                    fd,
                    events: libc::POLLOUT,
                    revents: 0,
                }];
                sys::ppoll(&mut room, None)?;
            }
            Err(_) if done > 0 => break,
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

fn send_as(
    fd: Fd,
    socket: &'static Socket,
    what: Gather<'_>,
    flags: i32,
    blocking: Blocking,
) -> Sys<usize> {
    let wanted = what.len();
    let mut done = 0;
    let mut overtaken = false;
    let mut wait = Wait::new(fd, socket, WaitFor::Space, blocking.until());
    loop {
        let fd = socket.anchor(fd);
        let Some(chan) = Chan::of(socket) else {
            return if done > 0 { Ok(done) } else { Err(NOT_BOUND) };
        };
        // A call that has sent some bytes ends without a signal (`tcp_sendmsg`).
        let quietly = if done > 0 { libc::MSG_NOSIGNAL } else { 0 };
        match send_now(fd, socket, &chan, what.behind(done), flags | quietly) {
            Ok(Try::Bytes(n)) => {
                done += n;
                if done >= wanted {
                    return Ok(done);
                }
            }
            Ok(Try::Again) => {}
            Ok(Try::Full) if !overtaken && overtake(fd, socket, &chan) => overtaken = true,
            Ok(Try::Full) => {
                if !blocking.waits(fd, socket, &wait) {
                    if is_room_after_all(socket, &chan) {
                        continue;
                    }
                    return if done > 0 {
                        Ok(done)
                    } else {
                        Err(Errno(libc::EAGAIN))
                    };
                }
                if let Err(e) = wait.wait(&chan) {
                    return if done > 0 { Ok(done) } else { Err(e) };
                }
            }
            Err(e) if done > 0 => {
                reset::keep_for_later(socket, e);
                return Ok(done);
            }
            Err(e) => return Err(e),
        }
    }
}

/// Before a caller gets EAGAIN: an edge-triggered set must report later room, and no thread would
/// check for it otherwise. True when there is room already.
fn is_room_after_all(socket: &'static Socket, chan: &Chan) -> bool {
    if chan.own().tx_mode.peek() == TxMode::Ring {
        return chan.arm_space();
    }
    epoll::watch_edges_for_room(socket);
    false
}

fn send_now(
    fd: Fd,
    socket: &'static Socket,
    chan: &Chan,
    rest: Gather<'_>,
    flags: i32,
) -> Sys<Try> {
    if socket.is_reset() {
        if !socket.reset_reported.load(Ordering::Relaxed) {
            return Err(Errno(libc::ECONNRESET));
        }
        return to_tcp(fd, socket, rest, flags); // EPIPE, with SIGPIPE.
    }
    let Some(lock) = chan.lock_tx(socket) else {
        return reset::abort(fd, socket, Reason::CorruptMemory);
    };
    if lock.nested {
        // A signal handler sends while its own thread is inside a send on this socket. The ring
        // ends here, so the interrupted send finds the end and goes on by TCP.
        socket.note_end(Reason::UnsupportedCall);
        chan.freeze_tx();
    }
    give_back(fd, socket, chan)?;
    if flags & libc::MSG_OOB != 0 {
        end_for_urgent(fd, socket, chan);
    }
    let mode = || chan.own().tx_mode.peek();
    // In the other modes no later decision depends on the count of bytes sent by TCP.
    let counts = || matches!(mode(), TxMode::Tcp | TxMode::Ended);
    let blocked = counts().then(SignalsBlocked::begin);
    let shut = socket.tx_shut.load(Ordering::Relaxed);
    let done = match mode() {
        _ if blocked.is_none() && counts() => Ok(Try::Again), // A signal handler changed it.
        TxMode::Tcp if !shut && may_switch(fd, socket, chan) => {
            chan.tx_ring().switch(socket.sent.load(Ordering::Relaxed));
            chan.own().tx_mode.transition(TxEvent::Switch);
            socket.show(State::Upgraded, Reason::None);
            Ok(Try::Again)
        }
        TxMode::Tcp | TxMode::After => to_tcp(fd, socket, rest, flags),
        TxMode::Ring => to_ring(fd, socket, chan, rest),
        TxMode::Ended => leave_ring(fd, socket, chan, flags),
    };
    drop(lock); // Before the signals are unblocked: their handlers find the lock free.
    drop(blocked);
    done
}

/// Ends the rings for urgent data, which only TCP supports: its last byte is not part of the stream
/// that the peer counts, so no ring may follow it: neither this one, if it has not begun, nor a
/// later one.
fn end_for_urgent(fd: Fd, socket: &'static Socket, chan: &Chan) {
    socket.leave(fd, Reason::OutOfBand);
    if !chan.tx_ring().frozen() {
        chan.freeze_tx();
        chan.freeze_rx();
    }
}

fn to_ring(fd: Fd, socket: &'static Socket, chan: &Chan, rest: Gather<'_>) -> Sys<Try> {
    if rest.parts().next().is_none() {
        return Ok(Try::Bytes(0));
    }
    match chan.put(socket, rest) {
        Put::Bytes { n, notify } => {
            watch_reader(fd, socket, chan, notify);
            Ok(Try::Bytes(n))
        }
        Put::Full => {
            if peer_has_finished(fd, socket, chan) {
                Ok(Try::Again)
            } else {
                Ok(Try::Full)
            }
        }
        Put::NoMemory => {
            // The whole connection goes on by TCP. A later upgrade may find memory.
            socket.note_end(Reason::OutOfMemory);
            chan.freeze_tx();
            chan.freeze_rx();
            Ok(Try::Again)
        }
        Put::Frozen => {
            chan.own().tx_mode.transition(TxEvent::End);
            Ok(Try::Again)
        }
        Put::Corrupt => reset::abort(fd, socket, Reason::CorruptMemory),
    }
}

/// At every sixteenth write that finds unread bytes, checks whether the peer's end of the anchor is
/// closed: a reader that leaves many messages unread may be dead, and a writer must learn of it as
/// on TCP.
fn watch_reader(fd: Fd, socket: &Socket, chan: &Chan, was_waiting: bool) {
    if was_waiting {
        socket.unread_writes.store(0, Ordering::Relaxed);
        return;
    }
    let n = count_one(&socket.unread_writes);
    if n.is_multiple_of(16) {
        peer_has_finished(fd, socket, chan);
    }
}

/// Whether the anchor shows the peer's FIN. Then the ring ends and TCP decides about further bytes
/// (delivery to a half-closed peer, reset by a dead one).
pub(crate) fn peer_has_finished(fd: Fd, socket: &Socket, chan: &Chan) -> bool {
    let gone = libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR;
    if sys::poll_now(fd, libc::POLLRDHUP) & gone == 0 {
        return false;
    }
    socket.note_end(Reason::HalfClosed);
    chan.freeze_tx();
    reset::notice_peer_death(fd, socket, chan);
    true
}

/// Sends recalled bytes by TCP, as many as TCP takes now. The caller holds the sender's lock.
fn give_back(fd: Fd, socket: &'static Socket, chan: &Chan) -> Sys<()> {
    if !chan.recall_due() {
        return Ok(());
    }
    let _blocked = SignalsBlocked::begin();
    // Bytes sent to a dead peer would look as if they had been written after its end.
    if sys::poll_now(fd, libc::POLLRDHUP) & libc::POLLRDHUP != 0
        && reset::notice_peer_death(fd, socket, chan)
    {
        return Err(Errno(libc::ECONNRESET));
    }
    // A peer that overwrites our word of published bytes could make the loop endless.
    let mut allowed = 1usize << STRIDE_SHIFT;
    let ring = chan.tx_ring();
    while chan.recall_due() {
        let mut bytes = [0u8; 2048]; // A thread may have 16 KiB of stack.
        let from = ring.tail();
        let Got::Bytes { n, .. } =
            ring.read_recalled(&chan.tx_bytes_all(), &mut [&mut bytes], true)
        else {
            return reset::abort(fd, socket, Reason::CorruptMemory);
        };
        match kernel::send(
            fd,
            bytes[..n].into(),
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
        ) {
            Ok(sent) => {
                socket.sent.fetch_add(sent as u64, Ordering::Relaxed);
                allowed = allowed.saturating_sub(sent);
                // A receive that a signal handler of the peer interrupted for the recall may have
                // taken the same bytes from the ring.
                let doubled = !ring.skip(from, sent as u64);
                if doubled || (allowed == 0 && chan.recall_due()) {
                    return reset::abort(fd, socket, Reason::CorruptMemory);
                }
            }
            Err(_) => break, // No room: the next call goes on. An error: the next call returns it.
        }
    }
    Ok(())
}

/// Sends recalled bytes from a call that does not send.
pub(crate) fn serve_recall(fd: Fd, socket: &'static Socket, chan: &Chan) {
    if !chan.recall_due() {
        return;
    }
    if let Some(lock) = chan.lock_tx(socket)
        && !lock.nested
    {
        let _ = give_back(fd, socket, chan);
    }
}

/// Leaves an ended ring: TCP may go on once the peer has acknowledged the switch to the ring, or
/// will never read again.
fn leave_ring(fd: Fd, socket: &'static Socket, chan: &Chan, flags: i32) -> Sys<Try> {
    let ring = chan.tx_ring();
    if !chan.recall_due() && reset::notice_peer_death(fd, socket, chan) {
        return Ok(Try::Again);
    }
    let unused = ring.tail() == 0 && ring.pending(STRIDE_SHIFT) == Some(0);
    let passable = || ring.acknowledged() || unused || reset::peer_is_gone(fd);
    if !chan.recall_due() && passable() {
        go_on_by_tcp(fd, socket, chan);
        return Ok(Try::Again);
    }
    if socket.tx_shut.load(Ordering::Relaxed) {
        return await_shutdown(fd, flags);
    }
    Ok(Try::Full)
}

/// Handles a send while a thread of ours is inside `shutdown(2)`, or after it. Nothing may go by
/// TCP, but the kernel returns EPIPE for no bytes, too, and raises SIGPIPE unless MSG_NOSIGNAL is
/// set.
fn await_shutdown(fd: Fd, flags: i32) -> Sys<Try> {
    kernel::send(fd, Gather::EMPTY, flags | libc::MSG_DONTWAIT)?;
    sys::yield_cpu();
    Ok(Try::Again)
}

/// Makes TCP carry what is sent from here, unless the peer recalls the ring at this very moment:
/// then its unread bytes go first. Resets the connection if bytes sent by TCP without the hooks
/// have overtaken the ring.
fn go_on_by_tcp(fd: Fd, socket: &Socket, chan: &Chan) {
    if was_overtaken(fd, socket) {
        let _: Sys<()> = reset::abort(fd, socket, Reason::MovedOutside);
        return;
    }
    chan.go_by_tcp();
    if chan.recalled() {
        chan.wait_for_recall();
    } else {
        socket.show(State::Downgraded, socket.end_reason());
    }
}

/// Whether TCP was given bytes that this process did not count. If another process shares the
/// socket over a fork, or after a FIN (which counts as a byte), the counts cannot tell.
fn was_overtaken(fd: Fd, socket: &Socket) -> bool {
    if socket.maybe_shared() || socket.tx_shut.load(Ordering::Relaxed) {
        return false;
    }
    let known = socket.sent.load(Ordering::Relaxed);
    sent_by_kernel(fd, socket).is_some_and(|sent| sent > known)
}

/// Lets TCP go on behind an ended ring although the peer has not acknowledged the switch to it: no
/// thread of the peer is inside a receive, and the next one sees the switch before it reads from
/// TCP. Valid only after a barrier on all threads that followed the switch.
pub(crate) fn leave_unnoticed(fd: Fd, socket: &'static Socket, chan: &Chan) {
    let Some(lock) = chan.lock_tx(socket) else {
        return;
    };
    let blocked = SignalsBlocked::begin();
    let ended = chan.own().tx_mode.get() == TxMode::Ended;
    if ended && !lock.nested && !chan.recall_due() && !chan.peer_receives() {
        go_on_by_tcp(fd, socket, chan);
    }
    drop(lock); // Before the signals are unblocked, as in `send_now`.
    drop(blocked);
}

/// Lets TCP go on behind an ended ring if the peer has acknowledged the switch to it, after the
/// bytes that it has recalled. A send of no bytes would do the same, but also take the error of a
/// reset connection from the kernel, which the application must get.
pub(crate) fn leave_noticed(fd: Fd, socket: &'static Socket, chan: &Chan) {
    if socket.is_reset() {
        return;
    }
    let Some(lock) = chan.lock_tx(socket) else {
        let _: Sys<()> = reset::abort(fd, socket, Reason::CorruptMemory);
        return;
    };
    let blocked = SignalsBlocked::begin();
    if give_back(fd, socket, chan).is_ok() && chan.own().tx_mode.get() == TxMode::Ended {
        let _ = leave_ring(fd, socket, chan, libc::MSG_NOSIGNAL);
    }
    drop(lock); // Before the signals are unblocked, as in `send_now`.
    drop(blocked);
}

/// How long after the barrier the peer's receiver is polled.
const LOOKS_US: u64 = 500;

/// Whether the ring has ended and the peer has not acknowledged the switch to it.
pub(crate) fn awaits_notice(chan: &Chan) -> bool {
    chan.own().tx_mode.get() == TxMode::Ended
        && !chan.tx_ring().acknowledged()
        && !chan.recall_due()
}

/// Runs a barrier on all threads of the peer. It takes milliseconds on a kernel without expedited
/// membarrier. Otherwise EPERM for a peer that is not a member: each of its connections could cost
/// us those milliseconds, too.
pub(crate) fn order(chan: &Chan) -> Sys<()> {
    if !barriers::joined() {
        barriers::on_all_processes()
    } else if chan.segment.peer_has_joined() {
        barriers::on_members()
    } else {
        Err(Errno(libc::EPERM))
    }
}

/// Whether [`overtake`] is due and would begin with a barrier, so that it may take long.
pub(crate) fn overtakes_slowly(socket: &Socket, chan: &Chan) -> bool {
    awaits_notice(chan)
        && !socket.switch_ordered.load(Ordering::SeqCst)
        && !socket.tx_shut.load(Ordering::Relaxed)
}

/// Tries to let TCP go on behind an ended ring while the peer makes no call and so does not notice
/// the switch to the ring. On TCP an idle receiver does not keep a sender from sending, so it must
/// not here. True when TCP may go on. The holder of a set's lock must not call this where it [is
/// slow](overtakes_slowly).
///
/// One barrier is enough for a switch: a receive that is over at any time after the barrier has
/// either seen the switch or read nothing since. A peer that stays inside is checked again.
pub(crate) fn overtake(fd: Fd, socket: &'static Socket, chan: &Chan) -> bool {
    if !awaits_notice(chan) {
        return false;
    }
    let mut watch_ticks = 0;
    if !socket.switch_ordered.load(Ordering::SeqCst) {
        if order(chan).is_err() {
            return false;
        }
        socket.switch_ordered.store(true, Ordering::SeqCst);
        watch_ticks = clock::us(LOOKS_US);
    }
    let begun = clock::ticks();
    loop {
        leave_unnoticed(fd, socket, chan);
        if chan.own().tx_mode.get() == TxMode::After {
            return true;
        }
        if clock::ticks().wrapping_sub(begun) >= watch_ticks {
            return false;
        }
        sys::yield_cpu();
    }
}

fn to_tcp(fd: Fd, socket: &'static Socket, rest: Gather<'_>, flags: i32) -> Sys<Try> {
    match kernel::send(fd, rest, flags | libc::MSG_DONTWAIT) {
        Ok(n) => {
            socket.sent.fetch_add(n as u64, Ordering::Relaxed);
            tcp_use::note(socket);
            Ok(Try::Bytes(n))
        }
        Err(Errno(libc::EAGAIN)) => Ok(Try::Full),
        Err(e) => Err(e),
    }
}

/// Whether our direction may move to the ring: the peer watches the ring, and the kernel agrees
/// with our count of sent bytes, so none went past the hooks.
fn may_switch(fd: Fd, socket: &Socket, chan: &Chan) -> bool {
    // While our own end is not mapped, a thread that found itself inside with others may undo the
    // binding.
    if !chan.own().is_open() || !chan.tx_ring().ready() || chan.tx_ring().frozen() {
        return false;
    }
    if sys::poll_now(fd, libc::POLLRDHUP) != 0 {
        return false; // The connection was reset, or its peer has ended: TCP reports it.
    }
    if sent_by_kernel(fd, socket) == Some(socket.sent.load(Ordering::Relaxed)) {
        return true;
    }
    let shared = socket.maybe_shared();
    let reason = if shared {
        Reason::ForkShared
    } else {
        Reason::MovedOutside
    };
    socket.leave(fd, reason);
    chan.freeze_tx();
    chan.freeze_rx();
    false
}

/// Offsets in `struct tcp_info` (`include/uapi/linux/tcp.h`).
const BYTES_ACKED_AT: usize = 120;
const BYTES_RECEIVED_AT: usize = 128;

/// States of a connection that has seen its peer's FIN (`include/net/tcp_states.h`): TIME_WAIT,
/// CLOSE_WAIT, LAST_ACK, CLOSING.
const PEER_HAS_FINISHED: [u8; 4] = [6, 8, 9, 11];

/// TCP_INFO's two byte counters: acknowledged, received (without a FIN).
fn counters(fd: Fd) -> Option<(u64, u64)> {
    let mut info = [0u64; 32];
    let len = sys::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info).ok()?;
    let word = |at: usize| info.get(at / 8).copied().filter(|_| len >= at + 8);
    let [state, ..] = info[0].to_ne_bytes();
    // The kernel counts a FIN as received.
    let fin = u64::from(PEER_HAS_FINISHED.contains(&state));
    Some((
        word(BYTES_ACKED_AT)?,
        word(BYTES_RECEIVED_AT)?.saturating_sub(fin),
    ))
}

/// Bytes that the kernel was given to send on this socket; `None` when it cannot tell.
pub(crate) fn sent_by_kernel(fd: Fd, socket: &Socket) -> Option<u64> {
    // The kernel counts the SYN of an active open as acknowledged.
    let syn = u64::from(!socket.accepted.load(Ordering::Relaxed));
    for _ in 0..8 {
        let (before, _) = counters(fd)?;
        let queued = sys::ioctl_int(fd, libc::TIOCOUTQ).ok()?;
        let (after, _) = counters(fd)?;
        if before == after {
            return (after + u64::try_from(queued).ok()?).checked_sub(syn);
        }
    }
    None
}

/// Bytes that the kernel has delivered to readers of this socket; `None` when it cannot tell.
pub(crate) fn delivered_by_kernel(fd: Fd) -> Option<u64> {
    for _ in 0..8 {
        let (_, before) = counters(fd)?;
        let queued = sys::ioctl_int(fd, libc::FIONREAD).ok()?;
        let (_, after) = counters(fd)?;
        if before == after {
            return after.checked_sub(u64::try_from(queued).ok()?);
        }
    }
    None
}

#[cfg(test)]
mod tests;
