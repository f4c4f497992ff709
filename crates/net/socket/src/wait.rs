//! Blocking on one socket: `recv` and `send` that must wait.
//!
//! A waiter polls the ring, then sleeps on its bell and the anchor together, so that FIN and reset
//! wake it as on the kernel. Locks are not held during a wait.

#![expect(unsafe_code, reason = "waits through libc")]

use crate::asleep::{Asleep, Held};
use crate::chan::Chan;
use crate::policy::wake_cost;
use crate::sock::Socket;
use crate::thread_bells::Borrowed;
use crate::{asleep, clock, idle, kernel, lock, policy, send, thread_bells};
use saiga_channel::direction::{RxMode, TxMode};
use saiga_channel::sys::{self, Errno, Fd, Sys};
use saiga_status::Reason;

/// The condition that a wait is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitFor {
    /// Something to receive.
    Bytes,
    /// Room to send.
    Space,
}

/// What else ends the waits of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// O_NONBLOCK, if it is set before the first wait sleeps.
    NonblockSet,
    /// The timeout alone, whatever O_NONBLOCK says.
    TimeOut,
}

/// The waits of one call, which share one timeout.
#[derive(Debug)]
pub(crate) struct Wait {
    fd: Fd,
    socket: &'static Socket,
    what: WaitFor,
    until: Until,
    /// Naps so far: waits that may end without a bell.
    naps: u32,
    /// Deadline (CLOCK_MONOTONIC, ns), known once a wait goes to sleep; `None` inside: for ever.
    deadline: Option<Option<u64>>,
    /// Whether a wait of the call got no bell: the rings have ended then.
    has_no_bell: bool,
}

impl Wait {
    pub(crate) fn new(fd: Fd, socket: &'static Socket, what: WaitFor, until: Until) -> Wait {
        Wait {
            fd,
            socket,
            what,
            until,
            naps: 0,
            deadline: None,
            has_no_bell: false,
        }
    }

    /// Whether the call has slept already: O_NONBLOCK set from then on affects only later calls
    /// (`sock_rcvtimeo` and `sock_sndtimeo` are read once).
    pub(crate) fn has_begun(&self) -> bool {
        self.deadline.is_some()
    }

    /// Waits until an attempt may succeed, or until it will find O_NONBLOCK set.
    ///
    /// # Errors
    /// EAGAIN when SO_RCVTIMEO or SO_SNDTIMEO has passed; EINTR after a signal whose handler
    /// does not ask for a restart (`man 7 signal`).
    #[inline(never)] // Its frame lies below `self` then.
    pub(crate) fn wait(&mut self, chan: &Chan) -> Sys<()> {
        self.fd = self.socket.anchor(self.fd);
        if policy::wait_awake(chan.peer_cpu(), Some(chan.segment), || self.ready(chan)) {
            return Ok(());
        }
        let Ok(borrowed) = thread_bells::borrow() else {
            return self.go_by_tcp(chan, Reason::OutOfDescriptors);
        };
        let Some(index) = chan.segment.claim_wait_slot(borrowed.bell().name) else {
            // All wait slots of this segment are in use.
            return self.go_by_tcp(chan, Reason::UnsupportedCall);
        };
        let word = match self.what {
            WaitFor::Bytes => &chan.ours().rx_wait_slots,
            WaitFor::Space => &chan.ours().tx_wait_slots,
        };
        word.enter(index);
        let epoch = lock::epoch();
        let asleep = Asleep::begin(self);
        asleep.hold(borrowed.held());
        asleep.hold(Held::FirstClaim(self.socket, index)); // Includes our caller's pin.
        let slept = self.sleep(chan, index, &borrowed);
        if !asleep.end() {
            asleep::pin_again(self.socket);
            core::mem::forget(borrowed);
            return slept;
        }
        if lock::epoch() != epoch {
            return slept; // A signal handler has forked above us: bell and slot are the parent's.
        }
        word.leave(index);
        wake_cost::end_sleep(chan.segment.wait_slot(chan.segment.side, index));
        chan.segment.release_wait_slot(index);
        let _ = borrowed.bell().drain();
        slept
    }

    /// Whether an attempt may succeed, judged by shared memory alone.
    fn ready(&self, chan: &Chan) -> bool {
        match self.what {
            WaitFor::Bytes => {
                let ring = chan.rx_ring();
                match chan.own().rx_mode.peek() {
                    RxMode::Ring => ring.readable() || ring.frozen(),
                    RxMode::Tcp => ring.switched().is_some(),
                    RxMode::Drain | RxMode::After => false,
                }
            }
            WaitFor::Space => match chan.own().tx_mode.peek() {
                TxMode::Ring => chan.writable(),
                TxMode::Ended => chan.tx_ring().acknowledged(),
                TxMode::Tcp | TxMode::After => false,
            },
        }
    }

    /// Asks the peer to wake us; true when there is no need to wait.
    fn arm(&self, chan: &Chan) -> bool {
        match self.what {
            WaitFor::Bytes => {
                let something = chan.rx_ring().arm();
                chan.own().rx_mode.peek() == RxMode::Ring && something
            }
            WaitFor::Space => {
                let space = chan.arm_space();
                chan.own().tx_mode.peek() == TxMode::Ring && space
            }
        }
    }

    /// The anchor's events that may end the sleep.
    fn events_to_watch(&self, chan: &Chan) -> i16 {
        match self.what {
            // Recalled bytes are sent as soon as TCP takes them.
            WaitFor::Bytes if chan.recall_due() => libc::POLLIN | libc::POLLRDHUP | libc::POLLOUT,
            WaitFor::Bytes => libc::POLLIN | libc::POLLRDHUP,
            WaitFor::Space => match chan.own().tx_mode.peek() {
                // Recalled bytes wait for room on TCP.
                TxMode::Ended if chan.recall_due() => libc::POLLOUT | libc::POLLRDHUP,
                TxMode::Ring | TxMode::Ended => libc::POLLRDHUP,
                TxMode::Tcp | TxMode::After => libc::POLLOUT,
            },
        }
    }

    /// Begins or continues the sleep of the call. Returns its deadline (CLOCK_MONOTONIC, ns), if it
    /// has one. `None`: the call must not sleep, because O_NONBLOCK was set without the hooks.
    fn begin(&mut self) -> Option<Option<u64>> {
        let asks = self.until == Until::NonblockSet && !self.has_begun();
        if asks && self.socket.nonblock.ask(self.fd) {
            return None;
        }
        let until = || deadline_of(self.fd, self.what);
        Some(*self.deadline.get_or_insert_with(until))
    }

    fn sleep(&mut self, chan: &Chan, index: usize, bell: &Borrowed) -> Sys<()> {
        let wait_slot = chan.segment.wait_slot(chan.segment.side, index);
        if self.arm(chan) || wait_slot.sleep() || self.ready(chan) {
            return Ok(());
        }
        let Some(deadline) = self.begin() else {
            return Ok(());
        };
        let poll = |fd, events| libc::pollfd {
            fd,
            events,
            revents: 0,
        };
        let mut fds = [
            poll(self.fd, self.events_to_watch(chan)),
            poll(bell.bell().fd, libc::POLLIN),
        ];
        match self.rest(chan, bell, &mut fds, deadline) {
            Ok(0) => Err(Errno(libc::EAGAIN)),
            Ok(_) => {
                if fds[0].revents != 0 {
                    self.socket.anchor_events.note();
                    if self.what == WaitFor::Space {
                        send::peer_has_finished(self.fd, self.socket, chan);
                    }
                }
                Ok(())
            }
            Err(Errno(libc::EINTR)) if restarts(deadline) => Ok(()),
            Err(e) => Err(e),
        }
    }

    /// Waits for a nap that doubles each time. As `ppoll`, but the end of the nap counts as an
    /// event.
    fn nap(&mut self, fds: &mut [libc::pollfd], left: Option<u64>) -> Sys<usize> {
        let pause_ns = (1u64 << self.naps.min(6)).min(NAP_MS) * 1_000_000;
        self.naps = self.naps.saturating_add(1);
        let (time, naps) = idle::shorter(Some(pause_ns), left);
        // The number may refer to another file by now. A close from here on wakes this wait.
        fds[0].fd = self.socket.anchor(self.fd);
        // SAFETY: no signal mask.
        let n = unsafe { kernel::ppoll(fds, time, core::ptr::null()) }?;
        Ok(if naps { n.max(1) } else { n })
    }

    /// Ends the rings of a connection for which this thread has no bell, then waits for TCP. The
    /// peer may have to notice before TCP carries the bytes. No event reports that, so these waits
    /// are naps.
    fn go_by_tcp(&mut self, chan: &Chan, reason: Reason) -> Sys<()> {
        let Some(deadline) = self.begin() else {
            return Ok(());
        };
        if !self.has_no_bell {
            self.has_no_bell = true;
            self.socket.note_end(reason);
            chan.freeze_tx();
            chan.freeze_rx();
            return Ok(()); // The attempt may find itself on TCP at once.
        }
        let left = deadline.map(|d| d.saturating_sub(clock::monotonic_ns()));
        if left == Some(0) {
            return Err(Errno(libc::EAGAIN)); // Useless events could otherwise repeat for ever.
        }
        let events = match self.events_to_watch(chan) {
            // The peer's FIN is permanent: it would end every nap of a waiting sender.
            libc::POLLRDHUP => 0,
            others => others,
        };
        let mut fds = [libc::pollfd {
            fd: self.fd,
            events,
            revents: 0,
        }];
        match asleep::inside(self.socket, || self.nap(&mut fds, left)) {
            Ok(0) => Err(Errno(libc::EAGAIN)),
            Ok(_) => {
                if fds[0].revents != 0 {
                    self.socket.anchor_events.note();
                }
                Ok(())
            }
            Err(Errno(libc::EINTR)) if restarts(deadline) => Ok(()),
            Err(e) => Err(e),
        }
    }

    /// Waits in the kernel until the deadline, beginning with a nap while the channel has memory to
    /// release. The bell stays readable from one wait to the next.
    ///
    /// A sender whose ring has ended checks again after naps of up to 50 ms: the peer may have left
    /// a receive without noticing the switch to the ring, which wakes no thread.
    fn rest(
        &mut self,
        chan: &Chan,
        bell: &Borrowed,
        fds: &mut [libc::pollfd; 2],
        deadline: Option<u64>,
    ) -> Sys<usize> {
        loop {
            let now = clock::monotonic_ns();
            let left = deadline.map(|d| d.saturating_sub(now));
            if left == Some(0) {
                return Ok(0); // A bell that rings all the time must not delay the timeout.
            }
            if self.what == WaitFor::Space && send::awaits_notice(chan) {
                return self.nap(fds, left);
            }
            let (time, naps) = idle::shorter(idle::look(self.fd, self.socket, chan, now), left);
            // The numbers may refer to other files by now. A change from here on wakes this wait.
            fds[0].fd = self.socket.anchor(self.fd);
            fds[1].fd = bell.bell().fd;
            // SAFETY: no signal mask.
            let n = unsafe { kernel::ppoll(fds, time, core::ptr::null()) }?;
            if n > 0 || !naps {
                return Ok(n);
            }
        }
    }
}

/// Longest nap: naps of one wait double from 1 ms up to this.
const NAP_MS: u64 = 50;

/// Deadline of a wait that begins now, by the socket's own timeout.
fn deadline_of(fd: Fd, what: WaitFor) -> Option<u64> {
    let option = match what {
        WaitFor::Bytes => libc::SO_RCVTIMEO,
        WaitFor::Space => libc::SO_SNDTIMEO,
    };
    let mut time = libc::timeval {
        tv_sec: 0,
        tv_usec: 0,
    };
    sys::getsockopt(fd, libc::SOL_SOCKET, option, &mut time).ok()?;
    let part = |v: i64| u64::try_from(v).unwrap_or(0);
    let ns = part(time.tv_sec) * 1_000_000_000 + part(time.tv_usec) * 1000;
    (ns != 0).then(|| clock::monotonic_ns() + ns)
}

/// Whether an interrupted recv or send continues (`man 7 signal`): without a timeout, and only if
/// the process has no handler installed without SA_RESTART. The interrupting signal cannot be
/// known, so one such handler among many gives EINTR: a retry too many, never a hang.
fn restarts(deadline: Option<u64>) -> bool {
    const SA_RESTART: u64 = 0x1000_0000;
    deadline.is_none()
        && (1..=64)
            .filter_map(kernel::signal_action)
            .all(|(handler, flags)| handler <= 1 || flags & SA_RESTART != 0)
}
