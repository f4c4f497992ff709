//! Runs a script on the kernel, in real time.
//!
//! A line is due so many milliseconds after the line before it. Calls and segments in happen then,
//! or later. An expected segment may have left a little earlier, see [`tolerance`], and is awaited
//! for as long as the kernel can reasonably take: a slow machine makes a run slow, not wrong.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use saiga_wire::tcp::Flags;

use crate::compare;
use crate::device::{Device, Moment, sysctl};
use crate::icmp::{self, Error};
use crate::numbers::Numbers;
use crate::parse::{Action, Line, Segment};
use crate::settings::{DEFAULTS, Offers};
use crate::socket::{CLOSED, Settings, Socket, state_of_connection};

/// Calls that the kernel can do. All others name numbers of the engine, such as `cwnd`.
const CALLS: [&str; 17] = [
    "connect",
    "accept",
    "cookies",
    "established",
    "write",
    "writeurgent",
    "read",
    "resize",
    "shutdown",
    "close",
    "abort",
    "readable",
    "acked",
    "finished",
    "unreachable",
    "refused",
    "quench",
];

/// An expected segment or state is awaited for this long beyond its time.
const PATIENCE: Duration = Duration::from_millis(1500);
/// How long `established` takes.
const ROUND_TRIP: Duration = Duration::from_millis(20);
/// While a state is awaited, it is looked at this often.
const GLANCE: Duration = Duration::from_millis(10);

/// How a run went.
pub(crate) struct Run {
    /// What did not hold.
    pub(crate) result: Result<(), String>,
    /// How late the latest call or segment to the kernel was.
    pub(crate) late: Duration,
    /// How far the run fell behind the times of the script.
    pub(crate) behind: Duration,
    /// All segments, for people.
    pub(crate) trace: Vec<String>,
}

pub(crate) struct Script {
    pub(crate) device: Device,
    pub(crate) numbers: Numbers,
    pub(crate) socket: Socket,
    pub(crate) settings: Settings,
    pub(crate) offers: Offers,
    sent: VecDeque<(Moment, Segment)>,
    /// The time of the line before.
    last: Moment,
    start: Instant,
    late: Duration,
    behind: Duration,
    trace: Vec<String>,
}

/// Runs a script on the kernel. The calling thread changes its network namespace.
pub(crate) fn run(lines: &[Line]) -> Run {
    match Script::new() {
        Ok(mut script) => {
            let result = script.run(lines);
            Run {
                result,
                late: script.late,
                behind: script.behind,
                trace: script.trace,
            }
        }
        Err(error) => Run {
            result: Err(format!(
                "needs root, /dev/net/tun and ip(8) for a network namespace with a device: {error}"
            )),
            late: Duration::ZERO,
            behind: Duration::ZERO,
            trace: Vec::new(),
        },
    }
}

/// How much earlier than in the script the kernel may do something: it counts time in jiffies and
/// measures round trips itself.
fn tolerance(after: Duration) -> Duration {
    (after / 10).clamp(Duration::from_millis(8), Duration::from_millis(25))
}

fn told(error: io::Error) -> String {
    error.to_string()
}

impl Script {
    fn new() -> io::Result<Self> {
        let device = Device::new()?;
        for (name, value) in DEFAULTS {
            sysctl(name, value)?;
        }
        Ok(Self {
            device,
            numbers: Numbers::default(),
            socket: Socket::default(),
            settings: Settings::default(),
            offers: Offers::default(),
            sent: VecDeque::new(),
            last: Moment::now(),
            start: Instant::now(),
            late: Duration::ZERO,
            behind: Duration::ZERO,
            trace: Vec::new(),
        })
    }

    fn run(&mut self, lines: &[Line]) -> Result<(), String> {
        self.last = Moment::now();
        self.start = self.last.latest;
        let (mut skipped, mut scripted) = (Duration::ZERO, Duration::ZERO);
        for line in lines {
            let after = Duration::from_millis(line.after_ms) + skipped;
            if matches!(&line.action, Action::Call(name, _) if !CALLS.contains(&name.as_str())) {
                skipped = after;
                continue;
            }
            skipped = Duration::ZERO;
            scripted += after;
            let behind = self.last.latest - self.start;
            self.behind = self.behind.max(behind.saturating_sub(scripted));
            if matches!(&line.action, Action::Call(name, _) if name == "established") {
                scripted += ROUND_TRIP;
            }
            self.line(line, after)
                .map_err(|why| format!("line {}: {why}", line.number))?;
        }
        self.late = self.late.max(self.last.latest.elapsed());
        self.take()?;
        self.nothing_waits()
    }

    fn line(&mut self, line: &Line, after: Duration) -> Result<(), String> {
        match &line.action {
            Action::Out(expected) => return self.expect(after, expected),
            Action::State(name) => return self.expect_state(after, name),
            Action::Config(_) | Action::Call(..) | Action::In(_) | Action::TooBig(..) => {}
        }
        self.pause(after)?;
        let is_quick = match &line.action {
            Action::Call(name, _) => !["connect", "accept", "established"].contains(&name.as_str()),
            Action::In(_) | Action::TooBig(..) => true,
            Action::Config(_) | Action::Out(_) | Action::State(_) => false,
        };
        match &line.action {
            Action::Config(pairs) => self.configure(pairs).map_err(told)?,
            Action::Call(name, argument) => self.call(name, *argument)?,
            Action::In(segment) => self.send(segment)?,
            Action::TooBig(seq, mss) => self.icmp(Error::TooBig { mss: *mss }, *seq)?,
            Action::Out(_) | Action::State(_) => {}
        }
        self.last.latest = Instant::now();
        if is_quick {
            self.late = self.late.max(self.last.latest - self.last.earliest);
        }
        self.take()
    }

    /// Waits until the next line is due. Nothing may leave in the meantime.
    fn pause(&mut self, after: Duration) -> Result<(), String> {
        let due = self.last.latest + after;
        self.device.wait(due, false).map_err(told)?;
        let now = Moment::now();
        if !after.is_zero() {
            self.late = self.late.max(now.latest - due + self.last.delay());
        }
        self.take()?;
        self.nothing_waits()?;
        self.last = now;
        Ok(())
    }

    fn nothing_waits(&self) -> Result<(), String> {
        match self.sent.front() {
            None => Ok(()),
            Some((at, segment)) => Err(format!(
                "> {segment} left at {} ms, not expected",
                self.ms(*at)
            )),
        }
    }

    fn ms(&self, at: Moment) -> u128 {
        (at.latest - self.start).as_millis()
    }

    /// Takes what the kernel has sent so far.
    fn take(&mut self) -> Result<(), String> {
        while let Some((at, packet)) = self.device.next().map_err(told)? {
            if let Some(segment) = self.numbers.read(&packet)? {
                self.trace.push(format!("{:5} > {segment}", self.ms(at)));
                self.sent.push_back((at, segment));
            }
        }
        Ok(())
    }

    fn send(&mut self, segment: &Segment) -> Result<(), String> {
        let packet = self.numbers.write(segment);
        let ms = (Instant::now() - self.start).as_millis();
        self.trace.push(format!("{ms:5} < {segment}"));
        self.device.send(&packet).map_err(told)
    }

    /// A router reports an error of the segment with this number.
    fn icmp(&mut self, error: Error, seq: u32) -> Result<(), String> {
        let packet = icmp::packet(error, self.numbers.absolute_number(seq));
        let ms = (Instant::now() - self.start).as_millis();
        self.trace.push(format!("{ms:5} ICMP {error:?} of {seq}"));
        self.device.send(&packet).map_err(told)
    }

    /// The next segment of the kernel has all fields that are named, and does not leave early.
    fn expect(&mut self, after: Duration, expected: &Segment) -> Result<(), String> {
        let (at, found) = self.await_segment(after)?;
        if at.latest + tolerance(after) < self.last.earliest + after {
            return Err(format!("> {found} left at {} ms, too early", self.ms(at)));
        }
        if let Err(field) = compare::agree(expected, &found) {
            let ms = self.ms(at);
            return Err(format!(
                "> {found} left at {ms} ms: not the {field} of > {expected}"
            ));
        }
        self.last = at;
        Ok(())
    }

    fn await_segment(&mut self, after: Duration) -> Result<(Moment, Segment), String> {
        let limit = self.limit(self.last.latest, after);
        loop {
            self.take()?;
            if let Some(first) = self.sent.pop_front() {
                return Ok(first);
            }
            if Instant::now() > limit {
                let ms = (limit - self.start).as_millis();
                return Err(format!("no segment has left until {ms} ms"));
            }
            self.device.wait(limit, true).map_err(told)?;
        }
    }

    /// Until when to wait for what is due `after` the instant `last`. The timer of the kernel for a
    /// minute is an eighth late.
    fn limit(&self, last: Instant, after: Duration) -> Instant {
        let due = last + after;
        due + after / 4 + (due - self.start) / 8 + PATIENCE
    }

    /// The connection is in a state, or gets there soon.
    fn expect_state(&mut self, after: Duration, name: &str) -> Result<(), String> {
        let due = self.last.latest + after;
        let early = due - tolerance(after).min(after);
        self.device.wait(early, false).map_err(told)?;
        self.late = self.late.max(early.elapsed() + self.last.delay());
        if self.behind > tolerance(after) {
            // Late timers have moved the line beyond a time that the kernel counts from the start.
            self.late = self.late.max(self.behind);
        }
        let limit = self.limit(self.last.latest, after);
        loop {
            self.take()?;
            self.nothing_waits()?;
            let found = self.socket.state(name.contains(' ')).map_err(told)?;
            if compare::states_agree(name, &found) {
                break;
            }
            if Instant::now() > limit {
                return Err(format!("the state is {found}, not {name}"));
            }
            let next = Instant::now() + GLANCE;
            self.device.wait(next, false).map_err(told)?;
        }
        self.device.wait(due, false).map_err(told)?;
        if !after.is_zero() {
            self.last = Moment::now();
        }
        Ok(())
    }

    fn call(&mut self, name: &str, argument: u32) -> Result<(), String> {
        let done = match name {
            "connect" | "accept" | "cookies" => self.open(name),
            "established" => return self.establish(),
            "write" => self.socket.write(argument, 0),
            "writeurgent" => self.socket.write(argument, libc::MSG_OOB),
            "read" => self.socket.read(argument),
            "resize" => self.socket.resize(argument.cast_signed()),
            "shutdown" => self.socket.shutdown(),
            "close" => self.socket.close(false),
            "abort" => self.socket.close(true),
            "readable" | "acked" | "finished" => return self.check(name, argument),
            "unreachable" => return self.icmp(Error::Unreachable, argument),
            "refused" => return self.icmp(Error::Refused, argument),
            "quench" => return self.icmp(Error::SourceQuench, argument),
            other => return Err(format!("{other} is not a call")),
        };
        done.map_err(|error| format!("{name}: {error}"))
    }

    fn open(&mut self, name: &str) -> io::Result<()> {
        if state_of_connection()? == CLOSED {
            self.numbers.begin_anew();
        }
        if name == "connect" {
            return self.socket.connect(&self.settings);
        }
        if name == "cookies" {
            sysctl("tcp_syncookies", 2)?;
        }
        self.socket.listen(&self.settings)
    }

    fn check(&mut self, name: &str, expected: u32) -> Result<(), String> {
        let found = match name {
            "readable" => self.socket.readable(),
            "acked" => self.socket.acked(),
            _ => {
                return match self.socket.is_finished() {
                    Ok(true) => Ok(()),
                    Ok(false) => Err("the peer has not finished".to_owned()),
                    Err(error) => Err(format!("{name}: {error}")),
                };
            }
        };
        match found {
            Ok(found) if found == expected => Ok(()),
            Ok(found) => Err(format!("{found} bytes are {name}, not {expected}")),
            Err(error) => Err(format!("{name}: {error}")),
        }
    }

    /// The same active open as on the engine.
    fn establish(&mut self) -> Result<(), String> {
        self.call("connect", 0)?;
        let (at, _) = self.await_segment(Duration::ZERO)?;
        self.last = at;
        self.pause(ROUND_TRIP)?;
        let ecn = if self.offers.ecn {
            Flags::ECE
        } else {
            Flags::NONE
        };
        self.send(&Segment {
            flags: Flags::SYN | ecn,
            ack: Some(1),
            window: Some(8000),
            mss: Some(1000),
            scale: self.offers.scale.then_some(3),
            has_sack_permitted: self.offers.sack,
            timestamps: self.offers.timestamps.then_some([1000, self.numbers.clock]),
            ..Segment::default()
        })?;
        self.await_segment(Duration::ZERO).map(drop)
    }
}
