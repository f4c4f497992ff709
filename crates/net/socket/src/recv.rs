//! Receives on a bound socket: from TCP up to the switch, then from the ring, and from TCP again
//! after the ring has ended.
//!
//! Only the kernel decides on the end of the stream: FIN and reset are read from the anchor. They
//! are read only while the ring is empty, so that no byte sent before them is lost.

#![expect(
    unsafe_code,
    reason = "receives into the caller's buffers from the kernel"
)]

use crate::chan::Chan;
use crate::signals_blocked::SignalsBlocked;
use crate::sock::{NOT_BOUND, Socket, count_one};
use crate::{kernel, reset, send, wait};
use core::sync::atomic::Ordering;
use saiga_channel::direction::{RxEvent, RxMode};
use saiga_channel::layout::STRIDE_SHIFT;
use saiga_channel::ring::Got;
use saiga_channel::sys::{self, Errno, Fd, Sys};
use saiga_status::Reason;

/// The buffers of one call.
pub(crate) type Parts<'a, 'b> = &'a mut [&'b mut [u8]];

/// Outcome of one attempt that did not wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Try {
    /// Number of bytes received; 0 is the end of the stream.
    Bytes(usize),
    /// No byte is available now.
    Empty,
    /// The mode has changed: try again at once.
    Again,
}

/// `recv(2)` into several buffers on a bound, pinned socket.
///
/// # Errors
/// As `man 2 recv`: EAGAIN, ECONNRESET, EINTR, ETIMEDOUT, ...
pub(crate) fn recv(
    fd: Fd,
    socket: &'static Socket,
    parts: Parts<'_, '_>,
    flags: i32,
) -> Sys<usize> {
    let wanted: usize = parts.iter().map(|p| p.len()).sum();
    let whole = flags & libc::MSG_WAITALL != 0 && flags & libc::MSG_PEEK == 0;
    let mut done = 0;
    let mut wait = wait::Wait::new(fd, socket, wait::WaitFor::Bytes, wait::Until::NonblockSet);
    loop {
        let fd = socket.anchor(fd);
        let Some(chan) = Chan::of(socket) else {
            return if done > 0 { Ok(done) } else { Err(NOT_BOUND) };
        };
        let got = receive_now(fd, socket, &chan, parts, done, flags);
        match got {
            Ok(Try::Bytes(n)) => {
                done += n;
                if n == 0 || done >= wanted || !(whole || goes_on(fd, &chan, parts, done, flags)) {
                    return Ok(done);
                }
            }
            Ok(Try::Again) => {}
            Ok(Try::Empty) => {
                let empty = count_one(&socket.empty_reads);
                let enough = done > 0 && !whole;
                let refuses = flags & libc::MSG_DONTWAIT != 0
                    || (!wait.has_begun() && socket.nonblock.refuses(fd, empty));
                if enough || refuses {
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

/// Whether more bytes may be available for the same call.
///
/// Callers conclude from a short read that no byte is left (`man 7 epoll`). So one read continues
/// across the change from TCP to the ring and back. It ends before the urgent mark (`man 7 tcp`).
fn goes_on(fd: Fd, chan: &Chan, parts: &[&mut [u8]], done: usize, flags: i32) -> bool {
    if flags & libc::MSG_PEEK != 0 {
        return false;
    }
    let ring = chan.rx_ring();
    let may = if chan.own().rx_mode.peek() == RxMode::Ring {
        if ring.readable() {
            return true;
        }
        ring.frozen()
    } else {
        ends_a_part(parts, done)
    };
    may && sys::poll_now(fd, libc::POLLPRI) & libc::POLLPRI == 0
}

/// Whether the first `done` bytes end exactly where a part ends.
fn ends_a_part(parts: &[&mut [u8]], done: usize) -> bool {
    let mut end = 0;
    parts.iter().any(|part| {
        end += part.len();
        end == done
    })
}

/// Makes one attempt to receive, under the receiver's lock. Does not wait.
fn receive_now(
    fd: Fd,
    socket: &'static Socket,
    chan: &Chan,
    parts: Parts<'_, '_>,
    skip: usize,
    flags: i32,
) -> Sys<Try> {
    if socket.aborted.load(Ordering::Relaxed) {
        return if socket.reset_reported.load(Ordering::Relaxed) {
            Ok(Try::Bytes(0))
        } else {
            Err(Errno(libc::ECONNRESET))
        };
    }
    send::serve_recall(fd, socket, chan);
    let Some(lock) = chan.lock_rx(socket) else {
        return reset::abort(fd, socket, Reason::CorruptMemory);
    };
    let mode = || chan.own().rx_mode.peek();
    // In the other modes no later decision depends on the count of bytes received by TCP.
    let counts = || matches!(mode(), RxMode::Tcp | RxMode::Drain);
    let blocked = counts().then(SignalsBlocked::begin);
    let done = match mode() {
        _ if blocked.is_none() && counts() => Ok(Try::Again), // A signal handler changed it.
        RxMode::Ring => from_ring(fd, socket, chan, parts, skip, flags),
        RxMode::Tcp => match turn(fd, socket, chan) {
            Ok(true) => Ok(Try::Again),
            Ok(false) => before_switch(fd, socket, chan, parts, skip, flags),
            Err(e) => Err(e),
        },
        RxMode::Drain => drain(fd, socket, chan, parts, skip, flags),
        RxMode::After => after_ring(fd, socket, chan, parts, skip, flags),
    };
    drop(lock); // Before the signals are unblocked, so that their handlers find the lock free.
    drop(blocked);
    done
}

/// Reads from TCP after the ring has ended.
///
/// If the peer sent FIN before it could send recalled bytes again, these bytes are still in the
/// ring. No byte can follow them on TCP, so they are delivered before the end of the stream.
fn after_ring(
    fd: Fd,
    socket: &'static Socket,
    chan: &Chan,
    parts: Parts<'_, '_>,
    skip: usize,
    flags: i32,
) -> Sys<Try> {
    let got = from_tcp(fd, socket, parts, skip, flags, u64::MAX)?;
    if got == Try::Bytes(0) && chan.rx_ring().readable() {
        let peek = flags & libc::MSG_PEEK != 0;
        let left = read_behind(parts, skip, |parts| {
            let bytes = chan.rx_bytes();
            chan.rx_ring().read_recalled(&bytes, parts, peek)
        });
        if let Got::Bytes { n, .. } = left {
            return Ok(Try::Bytes(n));
        }
    }
    end_by_tcp(fd, socket, chan, parts, got)
}

/// Returns the result of a TCP read. At the end of the stream, returns [`end_of_stream`] instead.
fn end_by_tcp(
    fd: Fd,
    socket: &'static Socket,
    chan: &Chan,
    parts: &[&mut [u8]],
    got: Try,
) -> Sys<Try> {
    if got == Try::Bytes(0) && parts.iter().any(|p| !p.is_empty()) {
        return end_of_stream(fd, socket, chan);
    }
    Ok(got)
}

/// Reads from TCP before the peer has switched. If the read returns the end of the stream, but the
/// peer has switched since, the bytes in the ring come first.
fn before_switch(
    fd: Fd,
    socket: &'static Socket,
    chan: &Chan,
    parts: Parts<'_, '_>,
    skip: usize,
    flags: i32,
) -> Sys<Try> {
    let got = from_tcp(fd, socket, parts, skip, flags, u64::MAX)?;
    if got == Try::Bytes(0) && turn(fd, socket, chan)? {
        socket.anchor_events.note();
        return Ok(Try::Again);
    }
    end_by_tcp(fd, socket, chan, parts, got)
}

/// Changes the mode after the peer's switch to the ring, or after the end of a ring that was never
/// used. Returns true if the mode has changed.
pub(crate) fn turn(fd: Fd, socket: &'static Socket, chan: &Chan) -> Sys<bool> {
    let ring = chan.rx_ring();
    let frozen = ring.frozen();
    let Some(total) = ring.switched() else {
        // Frozen before the switch: the ring will never hold a byte.
        if frozen && ring.pending(STRIDE_SHIFT) == Some(0) {
            ring.acknowledge();
            chan.own().rx_mode.transition(RxEvent::End);
            chan.wake_writer();
            return Ok(true);
        }
        return Ok(false);
    };
    let _blocked = SignalsBlocked::begin();
    if chan.own().rx_mode.peek() != RxMode::Tcp {
        return Ok(true); // A signal handler was first.
    }
    let Some(had) = received_by_all(fd, socket) else {
        return Ok(false); // The kernel cannot tell at this moment.
    };
    if has_strayed(fd, socket) {
        return stay_on_tcp(fd, socket, chan);
    }
    let Some(remaining) = total.checked_sub(had) else {
        return reset::abort(fd, socket, Reason::CorruptMemory);
    };
    ring.acknowledge();
    chan.own().rx_remaining.store(remaining, Ordering::Relaxed);
    chan.own().rx_mode.transition(if remaining == 0 {
        RxEvent::Switch
    } else {
        RxEvent::Drain
    });
    if ring.frozen() {
        // The peer may wait for the acknowledgement. `frozen` is read after the acknowledgement was
        // written, and the peer freezes before it reads the acknowledgement, so one of the two
        // reads sees the other side's write.
        chan.wake_writer();
    }
    Ok(true)
}

/// Whether the application has read bytes without our hooks: the kernel has delivered more bytes
/// than we counted. Checked once for each switch, because it costs system calls.
fn has_strayed(fd: Fd, socket: &Socket) -> bool {
    // Once both directions have ended, the kernel's count may or may not include a FIN.
    if socket.maybe_shared() || sys::poll_now(fd, 0) & libc::POLLHUP != 0 {
        return false;
    }
    let known = socket.received.load(Ordering::Relaxed);
    send::delivered_by_kernel(fd).is_some_and(|delivered| delivered > known)
}

/// Recalls a ring to which the peer has switched, so that the peer sends the ring's bytes again by
/// TCP. Our application may read without the hooks again, which only TCP supports. The caller holds
/// the receiver's lock.
fn stay_on_tcp(fd: Fd, socket: &'static Socket, chan: &Chan) -> Sys<bool> {
    let ring = chan.rx_ring();
    socket.leave(fd, Reason::MovedOutside);
    if ring.frozen() && chan.peer_sends_tcp() && ring.readable() {
        // The peer has sent bytes by TCP since, and these would come before the ring's bytes.
        return reset::abort(fd, socket, Reason::MovedOutside);
    }
    ring.acknowledge();
    chan.freeze_tx();
    chan.recall_rx();
    Ok(true)
}

/// Number of bytes that TCP has delivered to all processes; `None` if the kernel cannot tell.
///
/// After a fork, another process may have received bytes that we did not count. Only then is the
/// kernel's count used.
fn received_by_all(fd: Fd, socket: &Socket) -> Option<u64> {
    if socket.maybe_shared() {
        send::delivered_by_kernel(fd)
    } else {
        Some(socket.received.load(Ordering::Relaxed))
    }
}

/// Reads from TCP the bytes that the peer sent before its switch, and changes to the ring after the
/// last of them.
fn drain(
    fd: Fd,
    socket: &'static Socket,
    chan: &Chan,
    parts: Parts<'_, '_>,
    skip: usize,
    flags: i32,
) -> Sys<Try> {
    let word = &chan.own().rx_remaining;
    let remaining = word.load(Ordering::Relaxed);
    let got = from_tcp(fd, socket, parts, skip, flags, remaining)?;
    if let Try::Bytes(n) = got
        && flags & libc::MSG_PEEK == 0
    {
        let left = remaining - (n as u64).min(remaining);
        word.store(left, Ordering::Relaxed);
        if left == 0 {
            chan.own().rx_mode.transition(RxEvent::Switch);
        }
    }
    Ok(got)
}

/// Maximum number of attempts to read from a ring while it is empty but an end is reported. An
/// honest peer causes three; a hostile peer could change the shared words again and again.
const LOOKS: u32 = 64;

/// Reads from the ring. If the ring is empty, checks whether the stream has ended.
fn from_ring(
    fd: Fd,
    socket: &'static Socket,
    chan: &Chan,
    parts: Parts<'_, '_>,
    skip: usize,
    flags: i32,
) -> Sys<Try> {
    if chan.rx_ring().readable() && parts.iter().all(|p| p.is_empty()) {
        return Ok(Try::Bytes(0)); // As in the kernel, an empty buffer receives 0 bytes.
    }
    let peek = flags & libc::MSG_PEEK != 0;
    let mut eof = false;
    for _ in 0..LOOKS {
        let got = read_behind(parts, skip, |parts| {
            chan.rx_ring().read(&chan.rx_bytes(), parts, peek)
        });
        match got {
            Got::Bytes { n, notify } => {
                socket.empty_reads.store(0, Ordering::Relaxed);
                if notify {
                    chan.wake_writer();
                    chan.end_if_excessive(socket);
                }
                return Ok(Try::Bytes(n));
            }
            Got::Ended => {
                chan.own().rx_mode.transition(RxEvent::End);
                return Ok(Try::Again);
            }
            Got::Corrupt => return reset::abort(fd, socket, Reason::CorruptMemory),
            Got::Empty if eof => return end_of_stream(fd, socket, chan),
            Got::Empty => {
                if socket.rx_shut.load(Ordering::Relaxed) {
                    return Ok(Try::Bytes(0));
                }
                let noted = socket.anchor_events.noted();
                if noted.is_none() && !anchor_due(fd, socket, flags) {
                    return Ok(Try::Empty);
                }
                match sys::recv(fd, &mut [0], libc::MSG_PEEK | libc::MSG_DONTWAIT) {
                    // FIN. Bytes that the peer wrote to the ring before it are visible now.
                    Ok(0) => eof = true,
                    Ok(_) if chan.rx_ring().frozen() => {}
                    Ok(_) => return reset::abort(fd, socket, Reason::MovedOutside),
                    Err(Errno(libc::EAGAIN)) => {
                        if let Some(noted) = noted {
                            socket.anchor_events.clear(noted);
                        }
                        return Ok(Try::Empty);
                    }
                    Err(e) => return Err(e),
                }
            }
        }
    }
    reset::abort(fd, socket, Reason::CorruptMemory)
}

/// Reads from a ring into the space behind the first `skip` bytes of the parts. If `skip` is not 0,
/// fills at most one part.
fn read_behind(
    parts: Parts<'_, '_>,
    mut skip: usize,
    read: impl FnOnce(Parts<'_, '_>) -> Got,
) -> Got {
    if skip == 0 {
        return read(parts);
    }
    for part in parts {
        if skip < part.len() {
            return read(&mut [&mut part[skip..]]);
        }
        skip -= part.len();
    }
    Got::Empty
}

/// Whether an empty read also checks an anchor that has no noted events: every sixteenth in a row
/// does, if the call does not block.
fn anchor_due(fd: Fd, socket: &Socket, flags: i32) -> bool {
    let n = socket.empty_reads.load(Ordering::Relaxed).wrapping_add(1);
    n.is_multiple_of(16) && (flags & libc::MSG_DONTWAIT != 0 || socket.nonblock.is_set(fd))
}

/// Returns the end of the stream: ECONNRESET if the peer has died with our bytes unread and no call
/// has returned this error yet, otherwise 0 bytes.
fn end_of_stream(fd: Fd, socket: &'static Socket, chan: &Chan) -> Sys<Try> {
    let is_reset = reset::notice_peer_death(fd, socket, chan);
    if is_reset && !socket.reset_reported.load(Ordering::Relaxed) {
        return Err(Errno(libc::ECONNRESET));
    }
    Ok(Try::Bytes(0))
}

/// Reads at most `limit` bytes from TCP into the space behind the first `skip` bytes of the parts.
fn from_tcp(
    fd: Fd,
    socket: &'static Socket,
    parts: Parts<'_, '_>,
    mut skip: usize,
    flags: i32,
    limit: u64,
) -> Sys<Try> {
    let mut limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let flags = (flags | libc::MSG_DONTWAIT) & !libc::MSG_WAITALL;
    let mut iov = [kernel::NO_PART; kernel::MAX_PARTS];
    let mut used = 0;
    for part in parts {
        let (behind, rest) = part.split_at_mut(skip.min(part.len()));
        skip -= behind.len();
        if let Some(entry) = iov.get_mut(used) {
            *entry = libc::iovec {
                iov_base: rest.as_mut_ptr().cast(),
                iov_len: rest.len().min(limit),
            };
            limit -= entry.iov_len;
            used += 1;
        }
    }
    // SAFETY: every vector lies within a part, which is writable.
    match unsafe { kernel::recv(fd, &mut iov[..used], flags) } {
        Ok(n) => {
            if flags & libc::MSG_PEEK == 0 {
                socket.received.fetch_add(n as u64, Ordering::Relaxed);
                socket.empty_reads.store(0, Ordering::Relaxed);
            }
            Ok(Try::Bytes(n)) // Also 0 for an empty buffer, as in the kernel.
        }
        Err(Errno(libc::EAGAIN)) => Ok(Try::Empty),
        Err(e) => Err(e),
    }
}

/// Number of bytes that a read would find now on TCP and in the ring (FIONREAD). The caller holds a
/// pin.
pub(crate) fn readable_bytes(fd: Fd, socket: &'static Socket, chan: &Chan) -> u64 {
    crate::readiness::notice_switch(fd, socket, chan);
    let queued = u64::try_from(sys::ioctl_int(fd, libc::FIONREAD).unwrap_or(0)).unwrap_or(0);
    let ring = chan.rx_ring().pending(STRIDE_SHIFT).unwrap_or(0);
    match chan.own().rx_mode.peek() {
        RxMode::Ring if chan.rx_ring().frozen() => ring + queued,
        RxMode::Ring => ring,
        RxMode::Drain => queued.min(chan.own().rx_remaining.load(Ordering::Relaxed)) + ring,
        RxMode::Tcp | RxMode::After => queued,
    }
}
