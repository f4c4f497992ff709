//! Closing: what happens when a descriptor, a connection or its channel ends.
//!
//! On the kernel, `close(2)` sends FIN, or RST if bytes are unread. With a channel, unread bytes
//! are in a ring that the kernel does not see; the peer may have recalled bytes that must still be
//! sent; and another thread or process may go on with the connection. This module restores the
//! kernel's behaviour in each case, and turns a connection back to plain TCP (a downgrade).

use crate::chan::Chan;
use crate::sock::Socket;
use crate::state::{Mode, ModeEvent, Phase, PhaseEvent};
use crate::{
    allowance, asleep, clock, epoll, kernel, links, recv, reset, rt, send, table, tcp_use, upgrade,
    uring,
};
use core::sync::atomic::{AtomicU64, Ordering};
use saiga_channel::barriers;
use saiga_channel::direction::{RxMode, TxMode};
use saiga_channel::layout::STRIDE_SHIFT;
use saiga_channel::sys::{self, Fd};
use saiga_channel::tuple::Tuple;
use saiga_status::{Reason, State};
use table::Entry;

/// How the `close(2)` hook goes on.
#[derive(Debug, PartialEq, Eq)]
pub enum Closing {
    /// The kernel closes the descriptor.
    Proceed,
    /// The descriptor is the library's own: for the application it is not open (EBADF).
    Refuse,
    /// The descriptor is closed already: the hook reports success.
    Done,
}

/// Prepares for `close(2)` of a descriptor.
pub fn before_close(fd: Fd) -> Closing {
    match table::get(fd) {
        Entry::Unknown => {
            uring::ended(fd);
            Closing::Proceed
        }
        // A vfork child closes its own descriptors, which our records do not describe.
        _ if !rt::in_own_process() => Closing::Proceed,
        Entry::Hidden => Closing::Refuse,
        Entry::Epoll(set) => {
            table::clear(fd);
            epoll::close(set, fd);
            Closing::Proceed
        }
        Entry::Socket(socket) => {
            table::clear(fd);
            close_socket(fd, socket)
        }
    }
}

/// Drops the record behind a number that the kernel has just given out again: its former file was
/// closed without a hook (`fclose` closes inside libc). Nothing of the record may apply to the new
/// file.
pub(crate) fn forget_stale(fd: Fd) {
    let stale = table::get(fd);
    if matches!(stale, Entry::Unknown | Entry::Hidden) || !rt::in_own_process() {
        return;
    }
    table::clear(fd);
    match stale {
        Entry::Epoll(set) => epoll::close_stale(set),
        Entry::Socket(socket) => {
            let pin = socket.pin(); // As in `close_socket`.
            if socket.refs.fetch_sub(1, Ordering::SeqCst) != 1 {
                return epoll::orphan(socket, fd);
            }
            epoll::forget(socket);
            if !socket.is_bound() {
                upgrade::abandon(socket);
            } else if let Some(chan) = Chan::of(socket).filter(|_| !socket.maybe_shared()) {
                end_channel(&chan);
            }
            drop(pin);
        }
        Entry::Unknown | Entry::Hidden => {}
    }
}

fn close_socket(fd: Fd, socket: &'static Socket) -> Closing {
    // Before the last descriptor is given up: a caller that leaves then would release the socket.
    let pin = socket.pin();
    if socket.refs.fetch_sub(1, Ordering::SeqCst) != 1 {
        epoll::orphan(socket, fd);
        return Closing::Proceed;
    }
    tcp_use::note_soon(socket);
    // First of all: once the peer knows of the end it may give the slot to another connection, and
    // a thread that examines a registration of this connection would act on the other one.
    epoll::forget(socket);
    let mut done = Closing::Proceed;
    if !socket.is_bound() {
        upgrade::abandon(socket);
    } else if let Some(chan) = Chan::of(socket) {
        if others_inside(socket) {
            keep_for_callers(fd, socket);
        } else if socket.maybe_shared() {
            done = close_shared(fd, &chan);
        } else {
            finish_recall(fd, socket, &chan, wait_limit());
            reset_if_unread(fd, &chan);
            end_channel(&chan);
        }
    }
    if let Some(entry) = rt::entry(socket.shown_as.load(Ordering::Relaxed)) {
        entry.end();
    }
    drop(pin);
    done
}

/// Whether another caller is inside the socket, in a frame that its thread has not jumped out of.
fn others_inside(socket: &'static Socket) -> bool {
    let others = || socket.pins.load(Ordering::SeqCst) > 1;
    others() && {
        asleep::release_abandoned(&socket);
        others()
    }
}

/// Keeps the connection for threads that are inside, possibly blocked. As in the kernel, they go on
/// with the connection that they called on, which ends when the last of them returns. Threads that
/// sleep in a receive or send change over to our copy of the descriptor. A poll sleeps on: the
/// kernel has its file, and if woken it would find the number closed (POLLNVAL).
fn keep_for_callers(fd: Fd, socket: &'static Socket) {
    if let Ok(copy) = sys::fcntl(fd, libc::F_DUPFD_CLOEXEC, rt::floor()) {
        rt::keep(&socket.own_copy, copy);
        if let Some(chan) = Chan::of(socket) {
            chan.wake_own_callers();
        }
    }
}

/// Closes a connection that another process may have open, too. Only the kernel knows whether our
/// copy was the last: it is asked after our copy is closed.
fn close_shared(fd: Fd, chan: &Chan) -> Closing {
    let tuple = Tuple::of(fd);
    sys::close(fd);
    let alive = tuple.is_some_and(|t| rt::look_up(&t).is_ok_and(|facts| facts.inode != 0));
    if !alive {
        end_channel(chan);
    }
    Closing::Done
}

/// Makes a close with unread bytes reset the connection (RFC 1122 §4.2.2.13): the kernel does not
/// see the bytes in the ring.
fn reset_if_unread(fd: Fd, chan: &Chan) {
    let unread = chan.rx_ring().pending(STRIDE_SHIFT).unwrap_or(0);
    if unread > 0 && chan.own().rx_mode.peek() != RxMode::After {
        let linger = libc::linger {
            l_onoff: 1,
            l_linger: 0,
        };
        let _ = sys::setsockopt(fd, libc::SOL_SOCKET, libc::SO_LINGER, &linger);
    }
}

/// Ends both rings and leaves the slot: the peer goes on by TCP with its next byte.
fn end_channel(chan: &Chan) {
    chan.rx_ring().acknowledge();
    chan.freeze_tx();
    chan.freeze_rx();
    chan.leave();
}

/// Corrects the records in a forked child. The parent's other threads do not exist here, so none of
/// them is inside a connection; connections that were closed under them end in this process.
pub(crate) fn forked() {
    for socket in Socket::all() {
        // Each page written here costs a copy.
        if socket.pins.load(Ordering::Relaxed) != 0 {
            socket.pins.store(0, Ordering::Relaxed);
        }
    }
    asleep::forked();
    for socket in Socket::all() {
        let closing = socket.mode.get() == Mode::Closing;
        let copied = socket.own_copy.load(Ordering::Relaxed) >= 0;
        let open = socket.refs.load(Ordering::Relaxed) != 0;
        let inside = socket.pins.load(Ordering::Relaxed) != 0;
        if !inside && (copied || !(closing || open)) {
            socket.mode.transition(ModeEvent::Close);
            release(socket);
        } else if !closing && !socket.is_bound() {
            upgrade::forked(socket);
        }
    }
}

/// Releases everything that a closed socket holds, when its last caller leaves.
pub(crate) fn release(socket: &'static Socket) {
    let copy = socket.own_copy.load(Ordering::SeqCst);
    if copy >= 0 {
        let chan = Chan::of(socket);
        let shared = socket.maybe_shared();
        if let Some(chan) = chan.as_ref().filter(|_| !shared) {
            finish_recall(copy, socket, chan, wait_limit());
            reset_if_unread(copy, chan);
            end_channel(chan);
        }
        // Only now: a child forked during the recall must close its copy, too.
        socket.own_copy.store(-1, Ordering::SeqCst);
        match chan.filter(|_| shared) {
            Some(chan) => {
                table::clear(copy);
                close_shared(copy, &chan);
            }
            None => rt::unhide_and_close(copy),
        }
    }
    let link = socket.link.swap(core::ptr::null_mut(), Ordering::AcqRel);
    if let Some(link) = links::of(link) {
        allowance::take_back(socket);
        links::leave_slot(link);
        rt::header().channels.fetch_sub(1, Ordering::Relaxed);
    }
    socket.free();
}

/// Downgrades the connection for a reason that `status` shows. A process that reads or writes the
/// descriptor without the library then finds every byte: the peer sends the unread bytes of our
/// ring again, over TCP.
pub(crate) fn downgrade(fd: Fd, socket: &'static Socket, reason: Reason) {
    if !socket.is_bound() && stop_trying(fd, socket, reason) {
        return;
    }
    socket.note_end(reason);
    // Before the rings end: a thread that finds them ended must not start another upgrade.
    let first = socket.phase.transition(PhaseEvent::Stop).is_some();
    if let Some(chan) = Chan::of(socket) {
        leave_rx(fd, socket, &chan, reason);
        leave_tx(fd, socket, &chan, reason);
        if first && !socket.is_reset() {
            rt::header().count_downgrade(reason);
        }
    }
    socket.unmark(fd);
    socket.show(State::Downgraded, socket.end_reason());
    // A vfork child has its parent's records but not its descriptors: the parent unbinds.
    if rt::in_own_process() {
        settle(fd, socket);
    }
}

/// Ends the upgrade attempts of a socket that is not bound. False if another thread has just bound
/// the socket.
fn stop_trying(fd: Fd, socket: &'static Socket, reason: Reason) -> bool {
    let Some(_state) = socket.state_lock.lock() else {
        return true;
    };
    if socket.is_bound() {
        return false;
    }
    if socket.phase.get() != Phase::Never {
        upgrade::abandon(socket);
        socket.never(fd, reason);
    }
    true
}

fn leave_rx(fd: Fd, socket: &'static Socket, chan: &Chan, reason: Reason) {
    let Some(_lock) = chan.lock_rx(socket) else {
        return;
    };
    let mode = || chan.own().rx_mode.peek();
    if mode() == RxMode::Tcp {
        chan.freeze_rx();
        let _ = recv::turn(fd, socket, chan);
    }
    if mode() == RxMode::After {
        return;
    }
    let too_late = chan.rx_ring().frozen() && chan.peer_sends_tcp() && chan.rx_ring().readable();
    if too_late && reason == Reason::SocketOption {
        return; // The application reads the rest of the ring through our hooks, and then TCP.
    }
    if too_late {
        // The peer sends by TCP again: ring bytes can no longer come before those on TCP.
        let _: sys::Sys<()> = reset::abort(fd, socket, reason);
    }
    chan.recall_rx();
    await_recall(fd, socket, chan, reason);
}

/// Waits briefly until the peer has sent the bytes that we left in the ring. A peer that sleeps in
/// a call sends them at once, a peer that computes sends them at its next call. A peer that has
/// ended, or that went on by TCP at the moment of our recall, never sends them. Then the stream has
/// a hole and the connection is reset.
fn await_recall(fd: Fd, socket: &'static Socket, chan: &Chan, reason: Reason) {
    let unread = || chan.rx_ring().readable();
    for round in 0..DOWNGRADE_WAIT_MS {
        if !unread() {
            return;
        }
        pause_1ms();
        // Not by its PID: a daemon's first process has ended, and the connection lives.
        if round % CHECK_EVERY_MS == 0 && reset::peer_is_gone(fd) {
            break;
        }
    }
    // After its FIN the peer cannot send the bytes either.
    let finished = sys::poll_now(fd, libc::POLLRDHUP) & libc::POLLRDHUP != 0;
    let gone = || reset::peer_is_gone(fd);
    if unread() && (finished || chan.peer_sends_tcp() || gone()) {
        let _: sys::Sys<()> = reset::abort(fd, socket, reason);
    }
}

fn pause_1ms() {
    let pause = libc::timespec {
        tv_sec: 0,
        tv_nsec: 1_000_000,
    };
    let _ = sys::ppoll(&mut [], Some(pause));
}

/// When this process last waited for a peer in vain (CLOCK_MONOTONIC, ns); 0: never.
static STALLED_AT: AtomicU64 = AtomicU64::new(0);
/// After a wait in vain, no peer is waited for during this time: it may have more connections.
const NO_WAIT_NS: u64 = 10_000_000_000;

/// When a call that begins now has waited long enough for its peers (CLOCK_MONOTONIC, ns).
pub(crate) fn wait_limit() -> u64 {
    let (now, stalled) = (clock::monotonic_ns(), STALLED_AT.load(Ordering::Relaxed));
    if stalled != 0 && now.saturating_sub(stalled) < NO_WAIT_NS {
        return now;
    }
    now + u64::from(DOWNGRADE_WAIT_MS) * 1_000_000
}

/// Resets a connection whose peer took no bytes until [`wait_limit`].
pub(crate) fn give_up<T>(fd: Fd, socket: &Socket) -> sys::Sys<T> {
    STALLED_AT.store(clock::monotonic_ns(), Ordering::Relaxed);
    reset::abort(fd, socket, Reason::PeerStalled)
}

/// Sends recalled bytes, which must go before our FIN. Waits until `until_ns` while TCP is full and
/// the peer alive, then resets the connection: otherwise close would wait for ever for a peer that
/// takes no bytes.
pub(crate) fn finish_recall(fd: Fd, socket: &'static Socket, chan: &Chan, until_ns: u64) {
    while chan.recall_due() {
        send::serve_recall(fd, socket, chan);
        if !chan.recall_due() {
            return;
        }
        let left = until_ns.saturating_sub(clock::monotonic_ns());
        if left == 0 {
            let _: sys::Sys<()> = give_up(fd, socket);
            return;
        }
        let mut anchor = [libc::pollfd {
            fd,
            events: libc::POLLOUT,
            revents: 0,
        }];
        let _ = sys::ppoll(&mut anchor, Some(kernel::timespec(left)));
        if anchor[0].revents & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0 {
            return;
        }
    }
}

/// How often [`await_recall`] asks the kernel whether the peer has ended.
const CHECK_EVERY_MS: u32 = 16;
/// How long a downgrade waits for the peer's part in it.
const DOWNGRADE_WAIT_MS: u32 = 200;
/// As `DOWNGRADE_WAIT_MS`, where the connection is reset otherwise. On a busy machine the peer's
/// thread may have to wait that long for a CPU; only a stopped peer exceeds it.
const RESET_WAIT_MS: u32 = 2000;

/// Ends our ring and waits until TCP may follow it: until the peer has acknowledged the switch to
/// the ring, or cannot miss it. A peer that is stopped in the middle of a receive can miss it. If
/// the descriptor goes to a process whose writes we do not see, those writes could overtake the
/// ring, so the connection is reset.
fn leave_tx(fd: Fd, socket: &'static Socket, chan: &Chan, reason: Reason) {
    chan.freeze_tx();
    let over = || chan.own().tx_mode.get() == TxMode::After;
    if over() || socket.tx_shut.load(Ordering::Relaxed) {
        return; // Nothing can follow our own FIN.
    }
    let unseen = leaves_the_hooks(reason);
    if unseen {
        finish_recall(fd, socket, chan, wait_limit());
    }
    let mut ordered = false;
    let wait_ms = if unseen {
        RESET_WAIT_MS
    } else {
        DOWNGRADE_WAIT_MS
    };
    for round in 0..wait_ms {
        // If another thread closes `fd`, the kernel may give its number to another file.
        let fd = socket.anchor(fd);
        send::leave_noticed(fd, socket, chan);
        if ordered && !over() {
            send::leave_unnoticed(fd, socket, chan);
        }
        if over() {
            return;
        }
        if round == 0 {
            ordered = send::order(chan).is_ok() || barriers::on_all_processes().is_ok();
        } else {
            pause_1ms();
        }
    }
    if unseen && !over() {
        let _: sys::Sys<()> = reset::abort(socket.anchor(fd), socket, reason);
    }
}

/// Whether a process whose calls pass no hook goes on with the connection.
pub(crate) fn leaves_the_hooks(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Exec | Reason::PassedOn | Reason::Stdio | Reason::IoUring
    )
}

/// Makes a socket plain again once both rings have ended and are empty. The caller holds the only
/// pin.
pub(crate) fn settle(fd: Fd, socket: &'static Socket) {
    let Some(chan) = Chan::of(socket) else { return };
    if !both_over(fd, socket, &chan) || socket.maybe_shared() {
        return;
    }
    let Some(_state) = socket.state_lock.try_lock() else {
        return;
    };
    if !socket.is_bound() || epoll::is_locked_below(socket) {
        return;
    }
    // Mode first, pins second: a thread that comes in now sees one of the two changes.
    socket.mode.transition(ModeEvent::Unbind);
    if socket.pins.load(Ordering::SeqCst) != 1 {
        socket.mode.transition(ModeEvent::Bind);
        epoll::look_again(socket); // A thread that examined it before saw a plain socket.
        return;
    }
    epoll::unbind_all(socket, &chan);
    chan.leave();
    socket.link.store(core::ptr::null_mut(), Ordering::Release);
    socket.anchor_events.clear_all();
    allowance::take_back(socket);
    links::leave_slot(chan.link);
    rt::header().channels.fetch_sub(1, Ordering::Relaxed);
    if socket.phase.get() != Phase::Never {
        rt::header().count_downgrade(socket.end_reason());
        socket.begin_again(socket.end_reason());
        socket.forget_end();
    }
}

/// Whether TCP carries both directions again.
fn both_over(fd: Fd, socket: &'static Socket, chan: &Chan) -> bool {
    let tx_mode = chan.own().tx_mode.peek();
    let sends_tcp = tx_mode == TxMode::After || (tx_mode == TxMode::Tcp && chan.tx_ring().frozen());
    if !sends_tcp {
        return false;
    }
    if chan.own().rx_mode.peek() == RxMode::Tcp && chan.rx_ring().frozen() {
        let Some(_lock) = chan.lock_rx(socket) else {
            return false;
        };
        let _ = recv::turn(fd, socket, chan);
    }
    chan.own().rx_mode.peek() == RxMode::After
        && !chan.rx_ring().readable()
        && !chan.recall_due()
        && !socket.is_reset()
}
