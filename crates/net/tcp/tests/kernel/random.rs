//! Random scripts: calls and segments to this side that a peer, or an attacker, could send.
//!
//! Deliberately absent, because the engine and the kernel are known to differ (docs/tcp.md): more
//! than one segment that asks for a challenge, more than one lost segment at a time, data beyond
//! the window, and more data in flight than the initial window.

use std::collections::BTreeMap;

use fastrand::Rng;
use saiga_wire::tcp::Flags;

use crate::parse::{Action, Line, Segment};
use crate::record::{Recorder, Step};

/// Most bytes in flight, and most bytes from the peer.
const MOST_IN_FLIGHT: u32 = 5000;
const MOST_FROM_PEER: u32 = 12_000;
/// The peer's timestamp at the begin.
const PEER_CLOCK: u32 = 1000;

/// A script in the making. The engine runs along, so that segments fit its numbers.
struct Author {
    rng: Rng,
    recorder: Recorder,
    steps: Vec<Step>,
    /// Time since the last step.
    slept_ms: u64,
    /// Lines of the recorder that were read.
    seen: usize,
    /// Options that both sides use.
    has_timestamps: bool,
    has_sack: bool,
    /// Largest payload of this side.
    mss: u32,
    /// The peer's data has a hole, or had one.
    has_hole: bool,
    /// Which bytes of the peer have arrived; its number is the index.
    arrived: Vec<bool>,
    /// The end of the peer's data without holes, the end of all of it, and whether that is all.
    peer: u32,
    top: u32,
    is_finished: bool,
    window: u16,
    /// What this side has sent and the peer has not acknowledged: begin and end of segments.
    flight: Vec<[u32; 2]>,
    /// The first number that is not acknowledged, and the end of what is so selectively.
    una: u32,
    sacked: u32,
    /// The end of what the application has written.
    written: u32,
    /// Data was sent again: Linux reduces another window, and measures other time-outs then.
    is_repeated: bool,
    /// The latest timestamp of this side.
    clock: u32,
    is_odd_sent: bool,
    /// The process no longer holds the connection.
    is_released: bool,
}

/// Calls, and segments to this side.
#[derive(Debug, Clone)]
pub(crate) struct Steps {
    pub(crate) all: Vec<Step>,
    /// How many of them open the connection.
    pub(crate) opening: usize,
}

/// The steps with this seed.
pub(crate) fn steps(seed: u64) -> Steps {
    let mut author = Author {
        rng: Rng::with_seed(seed),
        recorder: Recorder::new(),
        steps: Vec::new(),
        slept_ms: 0,
        seen: 0,
        has_timestamps: false,
        has_sack: true,
        mss: 1000,
        has_hole: false,
        arrived: vec![true],
        peer: 1,
        top: 1,
        is_finished: false,
        window: 8000,
        flight: Vec::new(),
        una: 1,
        sacked: 1,
        written: 1,
        is_repeated: false,
        clock: 0,
        is_odd_sent: false,
        is_released: false,
    };
    author.handshake();
    let opening = author.steps.len();
    for _ in 0..author.rng.u8(3..12) {
        author.step();
    }
    Steps {
        all: author.steps,
        opening,
    }
}

impl Author {
    /// Adds a step.
    fn add(&mut self, action: Action) {
        self.add_step(action, false);
    }

    fn add_step(&mut self, action: Action, is_odd: bool) {
        let line = Line {
            number: 0,
            after_ms: 0,
            action,
        };
        let mut step = Step { line, is_odd };
        self.recorder.step(&step);
        step.line.after_ms = core::mem::take(&mut self.slept_ms);
        self.steps.push(step);
        self.look();
    }

    /// Lets time pass before the next step.
    fn sleep(&mut self, ms: u64) {
        self.recorder.pass(ms);
        self.slept_ms += ms;
        self.look();
    }

    /// Looks at what the engine has sent.
    fn look(&mut self) {
        for line in &self.recorder.lines()[self.seen..] {
            let Action::Out(segment) = &line.action else {
                continue;
            };
            self.clock = segment.timestamps.map_or(self.clock, |[value, _]| value);
            let one = |flag| u32::from(segment.flags.contains(flag));
            let end = segment.seq + segment.length + one(Flags::FIN);
            let last = self.flight.last().map_or(self.una, |[_, end]| *end);
            let has_number = end > segment.seq && !segment.flags.contains(Flags::SYN);
            if has_number && end > last {
                self.flight.push([segment.seq, end]);
            }
            self.is_repeated |= has_number && end <= last;
        }
        self.seen = self.recorder.lines().len();
        // A smaller window is ignored if no number shows that it is newer.
        if let Some(window) = self.recorder.peer_window() {
            self.window = u16::try_from(window).unwrap_or(u16::MAX);
        }
    }

    fn call(&mut self, name: &str, argument: u32) {
        self.add(Action::Call(name.to_owned(), argument));
    }

    fn handshake(&mut self) {
        let mut on = |chance: f64| self.rng.f64() < chance;
        let (timestamps, scale, sack, nodelay) = (on(0.4), on(0.3), on(0.8), on(0.3));
        let word = |is_on| if is_on { "on" } else { "off" }.to_owned();
        let pairs = BTreeMap::from([
            ("timestamps".to_owned(), word(timestamps)),
            ("ws".to_owned(), word(scale)),
            ("sack".to_owned(), word(sack)),
            ("nodelay".to_owned(), word(nodelay)),
            ("quickack".to_owned(), word(true)),
        ]);
        self.add(Action::Config(pairs));
        let mut syn = Segment {
            flags: Flags::SYN,
            window: Some(8000),
            mss: *self
                .rng
                .choice(&[None, Some(536), Some(1000), Some(1460)])
                .unwrap(),
            scale: self.rng.bool().then_some(0),
            has_sack_permitted: self.rng.u8(0..4) > 0,
            ..Segment::default()
        };
        let peer_timestamps = self.rng.bool();
        match self.rng.u8(0..4) {
            0 => {
                self.call("accept", 0);
                syn.timestamps = peer_timestamps.then_some([PEER_CLOCK, 0]);
                self.agree(&syn, timestamps, sack);
                self.add(Action::In(syn));
                let ack = self.segment(Flags::NONE, 1, 0);
                self.sleep(20);
                self.add(Action::In(ack));
            }
            1 => {
                self.call("connect", 0);
                syn.ack = Some(1);
                syn.timestamps = (peer_timestamps && timestamps).then_some([PEER_CLOCK, 0]);
                syn.has_sack_permitted &= sack;
                syn.scale = syn.scale.filter(|_| scale);
                self.agree(&syn, timestamps, sack);
                self.sleep(20);
                self.add(Action::In(syn));
            }
            _ => {
                self.call("established", 0);
                (self.has_timestamps, self.has_sack) = (timestamps, sack);
                self.mss -= if timestamps { 12 } else { 0 };
            }
        }
    }

    /// Notes the options of the peer's SYN.
    fn agree(&mut self, syn: &Segment, timestamps: bool, sack: bool) {
        self.has_timestamps = timestamps && syn.timestamps.is_some();
        self.has_sack = sack && syn.has_sack_permitted;
        self.mss = u32::from(syn.mss.unwrap_or(536)) - if self.has_timestamps { 12 } else { 0 };
    }

    /// A segment of the peer that acknowledges what was acknowledged before.
    fn segment(&self, flags: Flags, seq: u32, length: u32) -> Segment {
        let elapsed = u32::try_from(self.recorder.elapsed_ms()).unwrap();
        Segment {
            flags,
            seq,
            length,
            ack: Some(self.una),
            window: Some(self.window),
            timestamps: self
                .has_timestamps
                .then_some([PEER_CLOCK + elapsed, self.clock]),
            ..Segment::default()
        }
    }

    fn step(&mut self) {
        let pauses: &[u64] = if self.flight.is_empty() {
            &[0, 0, 0, 1, 5, 20, 20, 60, 250]
        } else {
            // Without a round trip, everything would count as sent at the same time.
            &[5, 5, 10, 20, 20, 60, 250]
        };
        let pause = *self.rng.choice(pauses).unwrap();
        self.sleep(pause);
        match self.rng.u8(0..14) {
            0..=3 => self.write(),
            4 | 5 => self.data_in_order(),
            6 => self.data_above_a_hole(),
            7 => self.data_again(),
            8..=10 => self.acknowledge(),
            11 => self.change_window(),
            12 => self.end(),
            _ => self.odd(),
        }
    }

    /// Full segments, or a small one if it is alone; none that the window would cut: the engine
    /// repeats bytes and the kernel segments.
    fn write(&mut self) {
        let waiting = self.written.saturating_sub(self.una);
        let is_alone = waiting == 0;
        let length = match self.rng.u8(0..4) {
            0 | 1 if is_alone => *self.rng.choice(&[1, 10, 100]).unwrap(),
            more => self.mss * u32::from(more.max(1)),
        };
        let is_cut = self.window > 0 && u32::from(self.window) < waiting + length;
        let has_room = waiting + length <= MOST_IN_FLIGHT && waiting.is_multiple_of(self.mss);
        let carries_blocks = self.has_hole && self.has_sack;
        if has_room && !is_cut && !carries_blocks && !self.is_released && !self.is_repeated {
            self.written += length;
            self.call("write", length);
        }
    }

    fn some_length(&mut self) -> u32 {
        *self.rng.choice(&[1, 10, 500, 1000, 1460]).unwrap()
    }

    fn data_in_order(&mut self) {
        let length = self.some_length();
        self.data(self.peer, length);
    }

    /// Sends data of the peer, unless its end has been sent. Linux echoes the timestamp of a
    /// segment in which nothing is new.
    fn data(&mut self, seq: u32, length: u32) {
        let bytes = seq as usize..(seq + length) as usize;
        let size = self.arrived.len().max(bytes.end);
        self.arrived.resize(size, false);
        let is_new = self.arrived[bytes.clone()].contains(&false);
        let is_echoed = self.has_timestamps && !is_new;
        if self.is_finished || is_echoed || seq + length > MOST_FROM_PEER {
            return;
        }
        let segment = self.segment(Flags::PSH, seq, length);
        self.arrived[bytes].fill(true);
        self.top = self.top.max(seq + length);
        let hole = self.arrived.iter().position(|has_arrived| !has_arrived);
        self.peer = hole.map_or(self.top, |hole| u32::try_from(hole).unwrap());
        self.add(Action::In(segment));
    }

    fn data_above_a_hole(&mut self) {
        let (length, hole) = (self.some_length(), self.some_length());
        if self.flight.is_empty() {
            self.has_hole = true;
            self.data(self.peer + hole, length);
        }
    }

    fn data_again(&mut self) {
        let (back, length) = (self.some_length(), self.some_length());
        self.data(self.peer.saturating_sub(back).max(1), length);
    }

    /// Everything, the first segment, nothing new, or all but the first one.
    fn acknowledge(&mut self) {
        let mut segment = self.segment(Flags::NONE, self.top, 0);
        let end = self.flight.last().map_or(self.una, |[_, end]| *end);
        let first = self.flight.first().map_or(self.una, |[_, end]| *end);
        match self.rng.u8(0..6) {
            0..=2 => segment.ack = Some(end),
            // What was acknowledged selectively stays so.
            _ if self.sacked > self.una || self.is_repeated => segment.ack = Some(end),
            // Linux takes the time-out of a last segment from when it was sent.
            3 | 4 if self.flight.len() > 2 => segment.ack = Some(first),
            _ if self.has_sack && first < end => {
                self.sacked = end;
                segment.sack = vec![[first, end]];
            }
            _ => {}
        }
        self.una = segment.ack.unwrap();
        self.flight.retain(|[_, end]| *end > self.una);
        self.add(Action::In(segment));
    }

    fn change_window(&mut self) {
        // Linux does not repeat what the window no longer covers.
        let windows: &[u16] = if !self.flight.is_empty() {
            &[8000, 60_000]
        } else if self.una < self.written {
            &[0, 8000, 60_000]
        } else {
            &[0, 500, 8000, 60_000]
        };
        self.window = *self.rng.choice(windows).unwrap();
        let segment = self.segment(Flags::NONE, self.top, 0);
        self.add(Action::In(segment));
    }

    fn end(&mut self) {
        match self.rng.u8(0..5) {
            // The engine takes two small segments for one, which Linux does not.
            0..=2 if self.is_released || self.is_repeated || self.una < self.written => {}
            0 | 1 => self.call("shutdown", 0),
            2 => {
                // Data after a close is answered with another kind of reset.
                (self.is_finished, self.is_released) = (true, true);
                self.call("close", 0);
            }
            _ if !self.is_finished => {
                let segment = self.segment(Flags::FIN, self.top, 0);
                self.peer += u32::from(self.peer == self.top);
                self.top += 1;
                self.is_finished = true;
                self.add(Action::In(segment));
            }
            _ => {}
        }
    }

    /// A segment that does not belong here; once in a script.
    fn odd(&mut self) {
        if self.is_released || self.has_hole || core::mem::replace(&mut self.is_odd_sent, true) {
            return;
        }
        let end = self.flight.last().map_or(self.una, |[_, end]| *end);
        let mut segment = self.segment(Flags::NONE, self.peer, 0);
        match self.rng.u8(0..8) {
            0 => segment.flags = Flags::RST,
            1 => (segment.flags, segment.seq) = (Flags::RST, self.peer + 10),
            2 => (segment.flags, segment.seq) = (Flags::RST, self.peer + 100_000),
            3 => segment.flags = Flags::SYN,
            4 => segment.ack = Some(end + 1000),
            5 => segment.ack = None,
            6 => segment.seq = self.peer - 1,
            _ => segment.seq = self.peer + 100_000,
        }
        self.add_step(Action::In(segment), true);
    }
}
