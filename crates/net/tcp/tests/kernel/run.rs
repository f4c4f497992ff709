//! Runs a script on the kernel, in real time.
//!
//! A line is due so many milliseconds after the line before it. Calls and segments in happen then,
//! or later. An expected segment may have left a little earlier, see [`tolerance`], and is awaited
//! for as long as the kernel can reasonably take: a slow machine makes a run slow, not wrong.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::time::{Duration, Instant};

use crate::clock;
use crate::compare;
use crate::device::{Device, GLANCE, Moment, sysctl};
use crate::numbers::Numbers;
use crate::parse::{Action, Line, Segment};
use crate::socket::{Settings, Socket};
use saiga_wire::tcp::Flags;

/// An expected segment or state is awaited for this long beyond its time.
const PATIENCE: Duration = Duration::from_millis(1500);

/// How a run went.
pub(crate) struct Run {
    /// What did not hold.
    pub(crate) result: Result<(), String>,
    /// How late the latest call or segment to the kernel was.
    pub(crate) late: Duration,
    /// All segments, for people.
    pub(crate) trace: Vec<String>,
}

struct Script {
    device: Device,
    numbers: Numbers,
    socket: Socket,
    settings: Settings,
    has: Offers,
    sent: VecDeque<(Moment, Segment)>,
    /// The time of the line before.
    last: Moment,
    start: Instant,
    late: Duration,
    trace: Vec<String>,
}

/// The options that `config` turned on.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "independent options")]
struct Offers {
    timestamps: bool,
    sack: bool,
    scale: bool,
    ecn: bool,
}

/// Runs a script on the kernel. The calling thread changes its network namespace.
pub(crate) fn run(lines: &[Line]) -> Run {
    let mut script = match Script::new() {
        Ok(script) => script,
        Err(error) => {
            return Run {
                result: Err(format!("no device in a network namespace: {error}")),
                late: Duration::ZERO,
                trace: Vec::new(),
            };
        }
    };
    let result = script.run(lines);
    Run {
        result,
        late: script.late,
        trace: script.trace,
    }
}

/// How much earlier than in the script the kernel may do something: it counts time in jiffies and
/// measures round trips itself.
fn tolerance(after: Duration) -> Duration {
    (after / 10).clamp(Duration::from_millis(8), Duration::from_millis(25))
}

fn io_error(error: io::Error) -> String {
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
            has: Offers {
                timestamps: false,
                sack: true,
                scale: false,
                ecn: false,
            },
            sent: VecDeque::new(),
            last: Moment::now(),
            start: clock::now(),
            late: Duration::ZERO,
            trace: Vec::new(),
        })
    }

    fn run(&mut self, lines: &[Line]) -> Result<(), String> {
        self.last = Moment::now();
        self.start = self.last.latest;
        for line in lines {
            self.line(line)
                .map_err(|why| format!("line {}: {why}", line.number))?;
        }
        self.take()?;
        self.nothing_waits()
    }

    fn line(&mut self, line: &Line) -> Result<(), String> {
        let after = Duration::from_millis(line.after_ms);
        match &line.action {
            Action::Out(expected) => return self.expect(after, expected),
            Action::State(name) => return self.expect_state(after, name),
            Action::Config(_) | Action::Call(..) | Action::In(_) => {}
        }
        self.pause(after)?;
        match &line.action {
            Action::Config(pairs) => self.configure(pairs)?,
            Action::Call(name, argument) => self.call(name, *argument)?,
            Action::In(segment) => self.send(segment)?,
            Action::Out(_) | Action::State(_) => {}
        }
        self.last.latest = clock::now();
        self.take()
    }

    /// Waits until the next line is due. Nothing may leave in the meantime.
    fn pause(&mut self, after: Duration) -> Result<(), String> {
        let due = self.last.latest + after;
        self.device.wait(due, false).map_err(io_error)?;
        let slack = self.last.latest - self.last.earliest;
        let now = clock::now();
        if !after.is_zero() {
            self.late = self.late.max((now - due) + slack.saturating_sub(GLANCE));
        }
        self.take()?;
        self.nothing_waits()?;
        self.last = Moment {
            earliest: now,
            latest: now,
        };
        Ok(())
    }

    fn nothing_waits(&self) -> Result<(), String> {
        match self.sent.front() {
            None => Ok(()),
            Some((at, segment)) => {
                Err(format!("{} ms, > {segment} was not expected", self.ms(*at)))
            }
        }
    }

    fn ms(&self, at: Moment) -> u128 {
        (at.latest - self.start).as_millis()
    }

    /// Takes what the kernel has sent so far.
    fn take(&mut self) -> Result<(), String> {
        while let Some((at, packet)) = self.device.next().map_err(io_error)? {
            if let Some(segment) = self.numbers.read(&packet)? {
                self.trace.push(format!("{:5} > {segment}", self.ms(at)));
                self.sent.push_back((at, segment));
            }
        }
        Ok(())
    }

    fn send(&mut self, segment: &Segment) -> Result<(), String> {
        let packet = self.numbers.write(segment);
        let ms = (clock::now() - self.start).as_millis();
        self.trace.push(format!("{ms:5} < {segment}"));
        self.device.send(&packet).map_err(io_error)
    }

    /// The next segment of the kernel has all fields that are named, and does not leave early.
    fn expect(&mut self, after: Duration, expected: &Segment) -> Result<(), String> {
        let (at, found) = self.await_segment(after)?;
        if at.latest + tolerance(after) < self.last.earliest + after {
            return Err(format!("> {found} left at {} ms, too early", self.ms(at)));
        }
        if let Err(why) = compare::agree(expected, &found) {
            return Err(format!("> {found} left at {} ms: {why}", self.ms(at)));
        }
        self.last = at;
        Ok(())
    }

    fn await_segment(&mut self, after: Duration) -> Result<(Moment, Segment), String> {
        let limit = self.last.latest + after + after / 4 + PATIENCE;
        loop {
            self.take()?;
            if let Some(first) = self.sent.pop_front() {
                return Ok(first);
            }
            if clock::now() > limit {
                let ms = (limit - self.start).as_millis();
                return Err(format!("no segment has left until {ms} ms"));
            }
            self.device.wait(limit, true).map_err(io_error)?;
        }
    }

    /// The connection is in a state, or gets there soon.
    fn expect_state(&mut self, after: Duration, name: &str) -> Result<(), String> {
        let due = self.last.latest + after;
        let early = if after.is_zero() {
            due
        } else {
            due - tolerance(after).min(after)
        };
        self.device.wait(early, false).map_err(io_error)?;
        let limit = due + after / 4 + PATIENCE;
        loop {
            self.take()?;
            self.nothing_waits()?;
            let found = self.socket.state(name.contains(' ')).map_err(io_error)?;
            if compare::states_agree(name, &found) {
                break;
            }
            if clock::now() > limit {
                return Err(format!("the state is {found}"));
            }
            let next = clock::now() + GLANCE;
            self.device.wait(next, false).map_err(io_error)?;
        }
        self.device.wait(due, false).map_err(io_error)?;
        if !after.is_zero() {
            self.last = Moment::now();
        }
        Ok(())
    }

    fn call(&mut self, name: &str, argument: u32) -> Result<(), String> {
        let done = match name {
            "connect" => self.socket.connect(&self.settings),
            "accept" => self.socket.listen(&self.settings),
            "established" => return self.establish(),
            "write" => self.socket.write(argument),
            "read" => self.socket.read(argument),
            "shutdown" => self.socket.shutdown(),
            "close" => self.socket.close(false),
            "abort" => self.socket.close(true),
            "readable" | "acked" => {
                let found = match name {
                    "readable" => self.socket.readable(),
                    _ => self.socket.acked(),
                };
                return match found.map_err(io_error)? {
                    found if found == argument => Ok(()),
                    found => Err(format!("{found} bytes are {name}")),
                };
            }
            "finished" => {
                return match self.socket.is_finished().map_err(io_error)? {
                    true => Ok(()),
                    false => Err("the peer has not finished".to_owned()),
                };
            }
            "cookies" => sysctl("tcp_syncookies", 2).and_then(|()| {
                self.socket.listen(&self.settings)
            }),
            // Numbers of the engine, such as `cwnd`.
            _ => return Ok(()),
        };
        done.map_err(|error| format!("{name}: {error}"))
    }

    /// The same active open as on the engine.
    fn establish(&mut self) -> Result<(), String> {
        self.call("connect", 0)?;
        let (at, _) = self.await_segment(Duration::ZERO)?;
        self.last = at;
        self.pause(Duration::from_millis(20))?;
        let ecn = if self.has.ecn { Flags::ECE } else { Flags::NONE };
        self.send(&Segment {
            flags: Flags::SYN | ecn,
            ack: Some(1),
            window: Some(8000),
            mss: Some(1000),
            scale: self.has.scale.then_some(3),
            has_sack_permitted: self.has.sack,
            timestamps: self.has.timestamps.then_some([1000, self.numbers.clock]),
            ..Segment::default()
        })?;
        self.await_segment(Duration::ZERO).map(drop)
    }

    fn configure(&mut self, pairs: &BTreeMap<String, String>) -> Result<(), String> {
        for (name, value) in pairs {
            let is_on = value == "on";
            let number = value.parse::<u32>().unwrap_or(0).cast_signed();
            let bit = i32::from(is_on);
            let done = match name.as_str() {
                "timestamps" => {
                    self.has.timestamps = is_on;
                    sysctl("tcp_timestamps", bit)
                }
                "sack" => {
                    self.has.sack = is_on;
                    sysctl("tcp_sack", bit)
                }
                "ws" => {
                    self.has.scale = is_on;
                    sysctl("tcp_window_scaling", bit)
                }
                "ecn" => {
                    self.has.ecn = is_on;
                    self.numbers.is_ecn = is_on;
                    sysctl("tcp_ecn", bit)
                }
                // 40 bytes of headers.
                "mss" => self.device.set_mtu(number.unsigned_abs() + 40),
                "clock" => {
                    self.numbers.clock = number.cast_unsigned();
                    Ok(())
                }
                "syn_retries" => sysctl("tcp_syn_retries", number),
                "syn_ack_retries" => sysctl("tcp_synack_retries", number),
                "data_retries" => sysctl("tcp_retries2", number),
                _ => self.configure_socket(name, is_on, number),
            };
            done.map_err(io_error)?;
        }
        Ok(())
    }

    fn configure_socket(&mut self, name: &str, is_on: bool, number: i32) -> io::Result<()> {
        let settings = &mut self.settings;
        match name {
            "buffer" => settings.buffer = Some(number),
            "newreno" => settings.is_newreno = is_on,
            "nodelay" => settings.is_nodelay = is_on,
            "user_timeout" => settings.user_timeout_ms = Some(number.unsigned_abs()),
            "keepalive" => settings.keepalive_ms = Some(number),
            other => return Err(io::Error::other(format!("{other} is not a setting"))),
        }
        Ok(())
    }
}

/// The kernel as the scripts expect it: options as the engine's scripts begin with them, nothing
/// remembered from other connections, time-outs that double from the first on, and TIME-WAIT that
/// ignores resets.
const DEFAULTS: [(&str, &str); 9] = [
    ("tcp_timestamps", "0"),
    ("tcp_window_scaling", "0"),
    ("tcp_ecn", "0"),
    ("tcp_sack", "1"),
    ("tcp_no_metrics_save", "1"),
    ("tcp_syn_linear_timeouts", "0"),
    ("tcp_syn_retries", "6"),
    ("tcp_slow_start_after_idle", "1"),
    ("tcp_rfc1337", "1"),
];
