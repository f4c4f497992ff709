//! The model of TCP: a byte queue in each direction, and the events that must be reported.
//!
//! Each operation is performed on the real connection and compared at once. After a reset bytes may
//! be lost, as on TCP; those that arrive must still be correct.

use crate::ends::{self, End, Set};
use crate::gaps;
use crate::terms::{Ctl, ENDED, IN, Mode, OUT, RDHUP, Side};
use saiga_socket::{Errno, Sys};

/// Up to this many unread bytes fit the receiver's buffer, so sent bytes have arrived.
const SURELY_ARRIVED: usize = 100_000;

/// How long an event that must come may take.
pub(crate) const PATIENCE_MS: i32 = 1000;

/// The bytes of one direction.
#[derive(Debug, Default)]
struct Stream {
    sent: usize,
    got: usize,
    /// The sender has closed or shut down.
    ended: bool,
    /// Some bytes may still be at the sender for lack of room, until all are read.
    stuck: bool,
}

fn pattern(from: Side, at: usize) -> u8 {
    let mixed = at
        .wrapping_mul(167)
        .wrapping_add(at >> 8)
        .wrapping_add(from.index() * 89);
    u8::try_from(mixed % 251).unwrap()
}

/// One registration as the application sees it.
#[derive(Debug, Clone, Copy)]
struct Registered {
    mode: Mode,
    data: u64,
    /// Edge-triggered: something has come since the last report.
    due: bool,
    /// One-shot: reported.
    spent: bool,
}

/// The connection, two epoll sets, and their expected state.
pub(crate) struct World {
    ends: [Option<End>; 2],
    sets: [Option<Set>; 2],
    /// By set and side.
    registered: [[Option<Registered>; 2]; 2],
    /// By sender.
    streams: [Stream; 2],
    shut: [bool; 2],
    /// The connection may be reset: an end was closed with unread bytes, or sent to.
    broken: bool,
    /// A direction may wait for the peer's next call before it goes on by TCP.
    downgraded: bool,
    /// Ends whose next call sends again what the other end has left in the ring.
    owes: [bool; 2],
    next_data: u64,
    /// Which ends were ever bound.
    pub(crate) bound: [bool; 2],
}

impl World {
    pub(crate) fn new(tracked: bool, a_offers: bool) -> World {
        World {
            ends: ends::connect(tracked, a_offers).map(Some),
            sets: [Some(Set::new(tracked)), Some(Set::new(tracked))],
            registered: [[None; 2]; 2],
            streams: [Stream::default(), Stream::default()],
            shut: [false; 2],
            broken: false,
            downgraded: false,
            owes: [false; 2],
            next_data: 1,
            bound: [false; 2],
        }
    }

    fn end(&self, side: Side) -> Option<&End> {
        self.ends[side.index()].as_ref()
    }

    /// Bytes on their way to `side`.
    fn pending(&self, side: Side) -> usize {
        let stream = &self.streams[side.peer().index()];
        stream.sent - stream.got
    }

    fn at_end(&self, side: Side) -> bool {
        self.streams[side.peer().index()].ended
    }

    fn is_readable(&self, side: Side) -> bool {
        self.pending(side) > 0 || self.at_end(side)
    }

    /// Whether bytes sent to `side` may not have arrived.
    fn is_uncertain(&self, side: Side) -> bool {
        let (peer, stream) = (side.peer(), &self.streams[side.peer().index()]);
        self.broken || stream.stuck || (self.owes[peer.index()] && self.end(peer).is_some())
    }

    fn note_bound(&mut self) {
        for (bound, end) in self.bound.iter_mut().zip(&self.ends) {
            *bound |= end.as_ref().is_some_and(End::is_bound);
        }
    }

    /// Notes something new for `side`: every edge-triggered registration must report it, unless it
    /// may still be at the sender for lack of room.
    fn new_edge(&mut self, side: Side) {
        let pending = self.pending(side);
        let stream = &mut self.streams[side.peer().index()];
        stream.stuck |= pending > SURELY_ARRIVED;
        if stream.stuck {
            return;
        }
        for set in &mut self.registered {
            if let Some(r) = &mut set[side.index()] {
                r.due = true;
            }
        }
    }

    pub(crate) fn send(&mut self, side: Side, n: usize) {
        let Some(end) = self.end(side) else { return };
        let at = self.streams[side.index()].sent;
        let bytes: Vec<u8> = (at..at + n).map(|i| pattern(side, i)).collect();
        let result = end.send(&bytes);
        self.note_bound();
        self.owes[side.index()] = false;
        if self.shut[side.index()] {
            let gone = self.broken && result == Err(Errno(libc::ECONNRESET));
            let waits =
                gaps::SEND_AFTER_SHUTDOWN_WAITS_FOR_THE_PEER && result == Err(Errno(libc::EAGAIN));
            let refused = gone || waits || result == Err(Errno(libc::EPIPE));
            assert!(refused, "{side:?} sent after shutdown: {result:?}");
            return;
        }
        if self.broken || self.end(side.peer()).is_none() {
            let allowed = [libc::EPIPE, libc::ECONNRESET, libc::EAGAIN, libc::ENOTCONN];
            assert!(
                result.is_ok() || allowed.map(|e| Err(Errno(e))).contains(&result),
                "{result:?}"
            );
            self.broken = true;
            self.streams[side.index()].sent += result.unwrap_or(0);
            return;
        }
        match result {
            Ok(done) => {
                assert!((1..=n).contains(&done), "{side:?} sent {done} of {n}");
                self.streams[side.index()].sent += done;
                self.new_edge(side.peer());
            }
            Err(Errno(libc::EAGAIN)) if self.pending(side.peer()) > 0 => {}
            Err(Errno(libc::EAGAIN)) if self.downgraded => {
                // The peer's next call lets this end go on.
                self.recv(side.peer(), 1);
                let again = self.end(side).map(|e| e.send(&bytes[..1]));
                assert_eq!(
                    again,
                    Some(Ok(1)),
                    "{side:?} cannot send although the peer made a call"
                );
                self.streams[side.index()].sent += 1;
                self.new_edge(side.peer());
            }
            Err(e) => panic!("{side:?} sent {n}, nothing is on its way, and got {e:?}"),
        }
    }

    fn check_bytes(&self, side: Side, got: &[u8], room: usize) {
        let stream = &self.streams[side.peer().index()];
        assert!(
            got.len() <= room.min(stream.sent - stream.got),
            "{side:?} got too much"
        );
        for (i, byte) in got.iter().enumerate() {
            let at = stream.got + i;
            assert_eq!(
                *byte,
                pattern(side.peer(), at),
                "{side:?}: byte {at} is wrong"
            );
        }
    }

    pub(crate) fn recv(&mut self, side: Side, n: usize) {
        let n = self.receive(side, n, 0);
        self.streams[side.peer().index()].got += n;
    }

    pub(crate) fn peek(&mut self, side: Side, n: usize) {
        self.receive(side, n, libc::MSG_PEEK);
    }

    /// Drops bytes unread (`MSG_TRUNC`, `man 7 tcp`).
    pub(crate) fn discard(&mut self, side: Side, n: usize) {
        if self.broken || self.pending(side) == 0 {
            return;
        }
        let dropped = self.receive(side, n, libc::MSG_TRUNC);
        self.streams[side.peer().index()].got += dropped;
    }

    /// One receiving call; returns the number of bytes.
    fn receive(&mut self, side: Side, n: usize, flags: i32) -> usize {
        let Some(end) = self.end(side) else { return 0 };
        let mut result = end.recv(n, flags);
        if result == Err(Errno(libc::EAGAIN)) && self.pending(side) > 0 && !self.broken {
            if let Some(peer) = self
                .end(side.peer())
                .filter(|_| self.owes[side.peer().index()])
            {
                let _ = peer.recv(1, libc::MSG_PEEK);
            }
            assert!(
                end.await_anchor(),
                "{side:?} cannot see {} bytes",
                self.pending(side)
            );
            result = end.recv(n, flags);
        }
        // A nonblocking reader checks the anchor with every sixteenth empty read.
        for _ in 0..16 {
            if result == Err(Errno(libc::EAGAIN)) && self.at_end(side) {
                result = end.recv(n, flags);
            }
        }
        self.note_bound();
        self.owes[side.index()] = false;
        let pending = self.pending(side);
        let n = self.judge(side, n, flags, &result);
        if n == pending {
            self.streams[side.peer().index()].stuck = false;
        }
        n
    }

    fn judge(&self, side: Side, n: usize, flags: i32, result: &Sys<Vec<u8>>) -> usize {
        let (pending, ended) = (self.pending(side), self.at_end(side));
        match result {
            Ok(got) if !got.is_empty() && flags & libc::MSG_TRUNC != 0 => {
                assert!(got.len() <= n.min(pending));
                got.len()
            }
            Ok(got) if !got.is_empty() => {
                self.check_bytes(side, got, n);
                got.len()
            }
            Ok(_) => {
                let expected = ended && pending == 0;
                assert!(
                    expected || self.broken,
                    "{side:?}: end of stream before {pending} bytes"
                );
                0
            }
            Err(Errno(libc::EAGAIN)) => {
                let expected = pending == 0 && !ended;
                assert!(
                    expected || self.broken,
                    "{side:?}: EAGAIN, {pending} bytes, ended {ended}"
                );
                0
            }
            Err(e) => {
                // Past the hooks, the kernel returns ENOTCONN for a connection that we have reset.
                let allowed = [libc::ECONNRESET, libc::EPIPE, libc::ENOTCONN];
                let reset = self.broken && allowed.contains(&e.0);
                assert!(reset, "{side:?}: {e:?} on a sound connection");
                0
            }
        }
    }

    /// Receives, and expects the error of a reset.
    pub(crate) fn expect_reset(&self, side: Side) {
        let result = self.end(side).map(|end| end.recv(1, 0));
        assert_eq!(result, Some(Err(Errno(libc::ECONNRESET))), "{side:?}");
    }

    pub(crate) fn readable_bytes(&mut self, side: Side) {
        let Some(end) = self.end(side).filter(|_| !self.is_uncertain(side)) else {
            return;
        };
        let (told, pending) = (end.readable_bytes(), self.pending(side));
        assert!(told <= pending, "FIONREAD says {told} of {pending}");
        let blind = gaps::FIONREAD_MISSES_A_SWITCH && end.is_bound();
        assert!(
            told > 0 || pending == 0 || blind,
            "FIONREAD says 0 of {pending} at {side:?}"
        );
    }

    /// Releases memory; the application must not be able to observe it.
    pub(crate) fn rest(&mut self, side: Side) {
        if let Some(end) = self.end(side) {
            end.rest();
        }
    }

    pub(crate) fn talk(&mut self, side: Side, messages: usize) {
        for i in 0..messages {
            self.send(side, 20 + i);
            self.recv(side.peer(), 4096);
            self.send(side.peer(), 5);
            self.recv(side, 4096);
        }
    }

    pub(crate) fn stay_on_tcp(&mut self, side: Side) {
        self.downgrade(side, End::stay_on_tcp);
    }

    pub(crate) fn turn_to_stdio(&mut self, side: Side) {
        self.downgrade(side, End::turn_to_stdio);
    }

    fn downgrade(&mut self, side: Side, ask: fn(&End)) {
        if let Some(end) = self.end(side) {
            ask(end);
            // Bytes that the peer cannot send again are lost with the ring: a reset.
            let lost = self.pending(side) > 0 && self.downgraded;
            let ended = gaps::RECALL_AFTER_A_SHUTDOWN_IS_RESET || !self.at_end(side);
            self.broken |= lost && ended;
            self.downgraded = true;
            self.owes[side.peer().index()] = true;
        }
    }

    /// Asserts that nothing so far could have reset the connection.
    pub(crate) fn expect_no_reset(&self) {
        assert!(!self.broken);
    }

    pub(crate) fn shutdown_write(&mut self, side: Side) {
        let Some(end) = self.end(side) else { return };
        let result = end.shutdown_write();
        // TCP is no longer connected once both ends have sent FIN.
        let over =
            self.at_end(side) && (self.shut[side.index()] || self.end(side.peer()).is_none());
        let lost = result == Err(Errno(libc::ENOTCONN)) && (over || self.broken);
        assert!(result.is_ok() || lost, "{side:?}: shutdown: {result:?}");
        self.shut[side.index()] = true;
        self.downgraded = true; // The peer goes back to TCP when it sees FIN.
        self.end_stream(side);
    }

    fn end_stream(&mut self, side: Side) {
        if !core::mem::replace(&mut self.streams[side.index()].ended, true) {
            self.new_edge(side.peer());
        }
    }

    pub(crate) fn close(&mut self, side: Side) {
        self.broken |= self.ends[side.index()].is_some() && self.pending(side) > 0;
        if self.ends[side.index()].take().is_some() {
            self.downgraded = true;
            self.end_stream(side);
            for set in &mut self.registered {
                set[side.index()] = None;
            }
        }
    }

    pub(crate) fn close_set(&mut self, set: usize) {
        self.sets[set] = None;
        self.registered[set] = [None; 2];
    }

    pub(crate) fn control(&mut self, set: usize, side: Side, ctl: Ctl, mode: Mode) {
        let (Some(epoll), Some(end)) = (&self.sets[set], self.end(side)) else {
            return;
        };
        let data = self.next_data;
        let op = match ctl {
            Ctl::Add => libc::EPOLL_CTL_ADD,
            Ctl::Mod => libc::EPOLL_CTL_MOD,
            Ctl::Del => libc::EPOLL_CTL_DEL,
        };
        let result = epoll.control(op, end, mode.events(), data);
        let known = self.registered[set][side.index()].is_some();
        let expected = match ctl {
            Ctl::Add if known => Err(Errno(libc::EEXIST)),
            Ctl::Mod | Ctl::Del if !known => Err(Errno(libc::ENOENT)),
            Ctl::Add | Ctl::Mod | Ctl::Del => Ok(()),
        };
        assert_eq!(result, expected, "{ctl:?} of {side:?}");
        if result.is_err() {
            return;
        }
        self.next_data += 1;
        let fresh = Registered {
            mode,
            data,
            due: true,
            spent: false,
        };
        self.registered[set][side.index()] = (ctl != Ctl::Del).then_some(fresh);
    }

    /// Events of a registration that the next wait must report.
    fn demanded(&self, side: Side, r: Registered) -> u32 {
        if self.is_uncertain(side) {
            return 0;
        }
        let readable = if self.is_readable(side) { IN } else { 0 };
        let sendable = self.pending(side.peer()) == 0 && !self.downgraded;
        match r.mode {
            Mode::Level => readable,
            Mode::LevelOut => readable | if sendable { OUT } else { 0 },
            // FIN may wait behind bytes that do not fit the receiver's buffer.
            Mode::LevelHup => {
                readable
                    | if self.at_end(side) && self.pending(side) == 0 {
                        RDHUP
                    } else {
                        0
                    }
            }
            Mode::Edge => {
                if r.due {
                    readable
                } else {
                    0
                }
            }
            Mode::OneShot => {
                if r.spent {
                    0
                } else {
                    readable
                }
            }
        }
    }

    /// Waits until every required event was reported, and checks that no other was.
    pub(crate) fn wait(&mut self, set: usize, room: usize) {
        let mut missing = [0; 2];
        for side in [Side::A, Side::B] {
            if let Some(r) = self.registered[set][side.index()] {
                missing[side.index()] = self.demanded(side, r);
            }
        }
        for _ in 0..100_000 {
            let Some(epoll) = &self.sets[set] else { return };
            let timeout_ms = if missing == [0; 2] { 0 } else { PATIENCE_MS };
            let reported = epoll.wait(room, timeout_ms).unwrap();
            assert!(reported.len() <= room);
            let idle = reported.is_empty();
            let mut twice = [false; 2];
            for (events, data) in reported {
                let side = self.reported(set, events, data);
                assert!(!twice[side.index()], "reported twice in one call");
                twice[side.index()] = true;
                missing[side.index()] &= !events;
            }
            if missing == [0; 2] {
                return;
            }
            assert!(!idle, "set {set} kept silent about {missing:x?}");
        }
        panic!("set {set} never reports {missing:x?}");
    }

    /// Checks one reported event and updates the registration.
    fn reported(&mut self, set: usize, events: u32, data: u64) -> Side {
        let found = [Side::A, Side::B]
            .into_iter()
            .find(|s| self.registered[set][s.index()].is_some_and(|r| r.data == data));
        let Some(side) = found else {
            panic!("event {events:#x} with stale data {data:#x}")
        };
        let readable = self.is_readable(side);
        let both_ends = self.at_end(side) && self.shut[side.index()];
        let peer_closed = self.end(side.peer()).is_none();
        let broken = self.broken;
        let at_end = self.at_end(side);
        let Some(r) = &mut self.registered[set][side.index()] else {
            return side;
        };
        let asked = r.mode.events() | ENDED;
        assert_eq!(
            events & !asked,
            0,
            "{side:?}: {events:#x} was not asked for"
        );
        let hup = gaps::SPENT_ONE_SHOT_HEARS_HUP && events & !ENDED == 0;
        let hup = hup || gaps::SPENT_ONE_SHOT_FIRES_AFTER_UPGRADE;
        assert!(
            !r.spent || hup,
            "{side:?}: one-shot reported {events:#x} again"
        );
        assert!(
            readable || broken || events & IN == 0,
            "{side:?}: readable and is not"
        );
        let ended = both_ends || peer_closed || broken;
        assert!(
            ended || events & ENDED == 0,
            "{side:?}: {events:#x} on a sound connection"
        );
        assert!(
            broken || at_end || events & RDHUP == 0,
            "{side:?}: no FIN was sent"
        );
        r.spent = r.mode == Mode::OneShot;
        r.due = false;
        side
    }

    /// Checks that all sent bytes arrive, then the end.
    pub(crate) fn finish(&mut self) {
        self.drain();
        for side in [Side::A, Side::B] {
            let both_open = self.ends.iter().all(Option::is_some);
            if both_open && !self.shut[side.index()] && !self.broken {
                self.send(side, 3);
                self.drain();
                self.shutdown_write(side);
            }
        }
        for set in 0..2 {
            self.wait(set, 8);
        }
        for side in [Side::A, Side::B] {
            self.recv(side, 16);
            self.close(side);
        }
    }

    /// Reads at both ends until no bytes are on their way.
    fn drain(&mut self) {
        for _ in 0..100_000 {
            let waiting = |w: &World, s: Side| w.end(s).is_some() && w.pending(s) > 0;
            if self.broken || ![Side::A, Side::B].iter().any(|s| waiting(self, *s)) {
                return;
            }
            self.recv(Side::A, 64 * 1024);
            self.recv(Side::B, 64 * 1024);
        }
        panic!("some bytes never come");
    }
}
