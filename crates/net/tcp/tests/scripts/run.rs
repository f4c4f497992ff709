//! Runs a script on a connection.

use std::collections::{BTreeMap, VecDeque};
use std::num::{NonZeroU8, NonZeroU32};

use saiga_tcp::{
    Algorithm, Arrival, CloseReason, Config, Connection, Context, CookieSecret, Counters, Events,
    IcmpError, Info, Instant, KeepAlive, Micros, Place, Settings, Start, StateName, Transmit,
    reset_for,
};
use saiga_wire::SeqNum;
use saiga_wire::ip::Ports;
use saiga_wire::tcp::{Flags, Header, Options, SackBlock, Timestamps};

use crate::parse::{Action, Line, Segment, Side, lines};

/// Initial numbers of this side and of the peer, near their wraps.
const ISS: SeqNum = SeqNum(u32::MAX - 2000);
const IRS: SeqNum = SeqNum(u32::MAX - 500);
/// The script begins at this instant, and timestamps of this side with zero.
pub(crate) const START: Instant = Instant(5_000_000);

/// A script in progress.
pub(crate) struct Script {
    config: Config,
    settings: Settings,
    buffer: u32,
    /// This side's timestamp at the start of the script.
    clock: u32,
    counters: Counters,
    connection: Option<Connection>,
    /// Whether the next SYN of the peer is accepted.
    is_listening: bool,
    /// Answers SYNs without a connection.
    cookies: Option<CookieSecret>,
    /// Initial numbers of this side and of the peer.
    iss: SeqNum,
    irs: SeqNum,
    pub(crate) now: Instant,
    /// Segments that have left, with their times.
    pub(crate) sent: VecDeque<(Instant, Segment)>,
    closed: Option<CloseReason>,
    is_finished: bool,
    pub(crate) readable: u32,
    pub(crate) acked: u32,
    /// How often urgent data was announced, and how often the path was in doubt.
    alarms: u32,
    doubts: u32,
    is_shown: bool,
}

/// The bytes do not matter here; the simulation checks them.
struct Nowhere;

impl Place for Nowhere {
    fn place(&mut self, _from: u32, _to: u32, _length: u32) {}
}

/// Runs a script; tells which line does not hold.
pub(crate) fn run(text: &str, is_shown: bool) -> Result<(), String> {
    let mut script = Script::new(is_shown);
    for line in lines(text, Side::Engine)? {
        script.advance(script.now + Micros::from_millis(line.after_ms));
        script
            .apply(&line)
            .map_err(|why| format!("line {}: {why}", line.number))?;
    }
    match script.sent.front() {
        None => Ok(()),
        Some((at, segment)) => Err(format!(
            "at the end: {} was not expected",
            shown(*at, segment)
        )),
    }
}

fn shown(at: Instant, segment: &Segment) -> String {
    format!("at {} ms, > {segment}", at.since(START).as_millis())
}

impl Script {
    pub(crate) fn new(is_shown: bool) -> Self {
        Self {
            config: Config {
                has_timestamps: false,
                has_window_scale: false,
                paced_from: Micros::MAX,
                ..Config::default()
            },
            settings: Settings::default(),
            buffer: 65_535,
            clock: 0,
            counters: Counters::default(),
            connection: None,
            is_listening: false,
            cookies: None,
            iss: ISS,
            irs: IRS,
            now: START,
            sent: VecDeque::new(),
            closed: None,
            is_finished: false,
            readable: 0,
            acked: 0,
            alarms: 0,
            doubts: 0,
            is_shown,
        }
    }

    fn context<R>(
        &mut self,
        call: impl FnOnce(&mut Connection, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let mut context = Context {
            now: self.now,
            config: &self.config,
            counters: &mut self.counters,
        };
        self.connection
            .as_mut()
            .map(|connection| call(connection, &mut context))
    }

    /// When the next timer expires.
    pub(crate) fn next_timeout(&mut self) -> Option<Instant> {
        self.context(|connection, context| connection.next_timeout(context))
            .flatten()
    }

    /// Lets timers expire until `until`.
    pub(crate) fn advance(&mut self, until: Instant) {
        while let Some(next) = self.next_timeout().filter(|next| *next <= until) {
            self.now = self.now.max(next);
            let events = self.context(Connection::on_timeout);
            self.note(events.unwrap_or_default());
            let before = self.sent.len();
            self.send();
            let again = self.next_timeout();
            let is_stuck = again.is_some_and(|again| again <= self.now);
            assert!(
                !is_stuck || self.sent.len() > before,
                "a timer stands still"
            );
        }
        self.now = until;
    }

    /// Takes all segments that leave now.
    fn send(&mut self) {
        while let Some(transmit) = self
            .context(|connection, context| connection.transmit(0, context))
            .flatten()
        {
            let segment = self.relative(&transmit);
            if self.is_shown {
                println!("{}", shown(self.now, &segment));
            }
            self.sent.push_back((self.now, segment));
        }
    }

    fn note(&mut self, events: Events) {
        self.closed = self.closed.or(events.closed);
        self.is_finished |= events.is_finished;
        self.readable += events.readable;
        self.acked += events.acked;
        self.alarms += u32::from(events.is_urgent);
        self.doubts += u32::from(events.is_doubtful);
    }

    /// Does what a line says, at the present time.
    pub(crate) fn apply(&mut self, line: &Line) -> Result<(), String> {
        if !matches!(line.action, Action::Out(_))
            && let Some((at, segment)) = self.sent.front()
        {
            return Err(format!("{} was not expected", shown(*at, segment)));
        }
        match &line.action {
            Action::Config(pairs) => self.configure(pairs),
            Action::Call(name, argument) => self.call(name, *argument),
            Action::In(segment) => self.receive(segment),
            Action::Out(expected) => self.expect(expected),
            Action::State(name) => self.check_state(name),
            Action::TooBig(seq, mss) => {
                self.icmp(IcmpError::TooBig { mss: *mss }, *seq);
                Ok(())
            }
        }
    }

    fn configure(&mut self, pairs: &BTreeMap<String, String>) -> Result<(), String> {
        for (name, value) in pairs {
            let is_on = value == "on";
            let number = value.parse::<u32>().unwrap_or(0);
            let is_number = value.parse::<u32>().is_ok();
            match name.as_str() {
                "mss" => self.config.mss = u16::try_from(number).unwrap(),
                "timestamps" => self.config.has_timestamps = is_on,
                "sack" => self.config.has_sack = is_on,
                "ws" => self.config.has_window_scale = is_on,
                "ecn" => self.config.has_ecn = is_on,
                "buffer" => self.buffer = number,
                "clock" => self.clock = number,
                "newreno" if is_on => self.config.congestion = Algorithm::NewReno,
                "syn_retries" => self.config.syn_retries = u8::try_from(number).unwrap(),
                "syn_ack_retries" => self.config.syn_ack_retries = u8::try_from(number).unwrap(),
                "data_retries" => self.config.data_retries = u8::try_from(number).unwrap(),
                "pacing" if is_on => self.config.paced_from = Micros::ZERO,
                "mtu_probing" => self.config.has_mtu_probing = is_on,
                "nodelay" => self.settings.is_nodelay = is_on,
                "user_timeout" => {
                    self.settings.user_timeout_ms = NonZeroU32::new(number);
                }
                "keepalive" => {
                    self.settings.keep_alive = is_number.then_some(KeepAlive {
                        idle_ms: number,
                        interval_ms: NonZeroU32::new(1000).unwrap(),
                        count: NonZeroU8::new(3).unwrap(),
                    });
                }
                "keepalive_default" => self.settings.keep_alive = Some(KeepAlive::default()),
                "quickack" => {} // Of the kernel; this side does so in the first segments.
                "iss" => self.iss = SeqNum(number),
                "irs" => self.irs = SeqNum(number),
                other => return Err(format!("{other} is not a setting")),
            }
        }
        let settings = self.settings;
        self.context(|connection, _| connection.set(settings));
        Ok(())
    }

    fn start(&self) -> Start {
        Start {
            iss: self.iss,
            timestamp_offset: self
                .clock
                .wrapping_sub(u32::try_from(START.0 / 1000).unwrap()),
            buffer: self.buffer,
        }
    }

    fn call(&mut self, name: &str, argument: u32) -> Result<(), String> {
        let settings = self.settings;
        match name {
            "connect" => {
                let start = self.start();
                let mut context = Context {
                    now: self.now,
                    config: &self.config,
                    counters: &mut self.counters,
                };
                let mut connection = Connection::connect(start, &mut context);
                connection.set(settings);
                self.connection = Some(connection);
            }
            "established" => return self.establish(),
            "accept" => self.is_listening = true,
            "unreachable" | "refused" | "quench" | "pathmtu" => self.network(name, argument),
            "cookies" => self.cookies = Some(CookieSecret::new([1, 2], self.now)),
            "write" => {
                self.context(|connection, context| connection.on_write(argument, context));
            }
            "writeurgent" => {
                self.context(|connection, context| connection.on_write_urgent(argument, context));
            }
            "read" => {
                self.context(|connection, _| connection.on_read(argument));
            }
            "shutdown" => {
                self.context(Connection::shutdown);
            }
            "close" => {
                let events = self.context(Connection::close);
                self.note(events.unwrap_or_default());
            }
            "abort" => {
                let events = self.context(Connection::abort);
                self.note(events.unwrap_or_default());
            }
            "resize" => {
                self.buffer = argument;
                self.context(|connection, _| connection.resize(argument));
            }
            "urgent" | "alarms" | "doubts" => return self.check_news(name, argument),
            "readable" if argument == self.readable => self.readable = 0,
            "acked" if argument == self.acked => self.acked = 0,
            "finished" if self.is_finished => {}
            "readable" => return Err(format!("{} bytes are readable", self.readable)),
            "acked" => return Err(format!("{} bytes are acknowledged", self.acked)),
            "finished" => return Err("the peer has not finished".to_owned()),
            figure => return self.check_figure(figure, argument),
        }
        self.send();
        Ok(())
    }

    /// News of the network.
    fn network(&mut self, name: &str, argument: u32) {
        match name {
            "pathmtu" => {
                let mss = u16::try_from(argument).unwrap();
                self.context(|connection, context| connection.on_path_mtu(mss, context));
            }
            "unreachable" => self.icmp(IcmpError::Unreachable, argument),
            "refused" => self.icmp(IcmpError::Refused, argument),
            _ => self.icmp(IcmpError::SourceQuench, argument),
        }
    }

    /// An ICMP error about the segment with this number.
    fn icmp(&mut self, error: IcmpError, seq: u32) {
        let seq = self.iss + seq;
        let events = self.context(|connection, context| connection.on_icmp(error, seq, context));
        self.note(events.unwrap_or_default());
        self.send();
    }

    /// Compares the bytes up to the end of urgent data, or how often such data was announced, or
    /// how often the path was in doubt, since the last such line.
    fn check_news(&mut self, name: &str, expected: u32) -> Result<(), String> {
        let ahead = self.context(|connection, _| connection.urgent_ahead());
        let found = match name {
            "alarms" => core::mem::take(&mut self.alarms),
            "doubts" => core::mem::take(&mut self.doubts),
            _ => ahead.flatten().unwrap_or(0),
        };
        if found == expected {
            return Ok(());
        }
        Err(format!("{name} is {found}"))
    }

    /// An active open that the peer answers after 20 ms with a window of 8,000 bytes, segments of
    /// 1,000 bytes, and all options that this side offers.
    fn establish(&mut self) -> Result<(), String> {
        self.call("connect", 0)?;
        self.sent.clear();
        self.advance(self.now + Micros::from_millis(20));
        let ecn = if self.config.has_ecn {
            Flags::ECE
        } else {
            Flags::NONE
        };
        self.receive(&Segment {
            flags: Flags::SYN | ecn,
            ack: Some(1),
            window: Some(8000),
            mss: Some(1000),
            scale: self.config.has_window_scale.then_some(3),
            has_sack_permitted: self.config.has_sack,
            timestamps: self.config.has_timestamps.then_some([1000, 0]),
            ..Segment::default()
        })?;
        self.sent.clear();
        Ok(())
    }

    fn receive(&mut self, segment: &Segment) -> Result<(), String> {
        let header = absolute(segment, self.iss, self.irs);
        if self.connection.is_none() && self.cookies.is_some() {
            self.receive_cookie(segment, &header);
            return Ok(());
        }
        if self.is_listening && segment.flags.contains(Flags::SYN) && segment.ack.is_none() {
            self.is_listening = false;
            let start = self.start();
            let mut context = Context {
                now: self.now,
                config: &self.config,
                counters: &mut self.counters,
            };
            let mut connection = Connection::accept(start, &header, &mut context);
            connection.set(self.settings);
            self.connection = Some(connection);
            self.send();
            return Ok(());
        }
        let arrival = Arrival {
            header: &header,
            length: segment.length,
            is_congested: segment.is_congested,
        };
        let events = self
            .context(|connection, context| connection.on_segment(&arrival, &mut Nowhere, context));
        self.note(events.ok_or("there is no connection")?);
        self.send();
        Ok(())
    }

    /// A listener under a flood: a SYN and its acknowledgement without a connection between them.
    fn receive_cookie(&mut self, segment: &Segment, header: &Header) {
        let Some(secret) = self.cookies else { return };
        let start = self.start();
        let mut context = Context {
            now: self.now,
            config: &self.config,
            counters: &mut self.counters,
        };
        let arrival = Arrival {
            header,
            length: segment.length,
            is_congested: false,
        };
        let answer = if segment.flags.contains(Flags::SYN) {
            let answer = secret.syn_ack(b"flow", &start, header, &mut context);
            self.iss = answer.seq;
            Some(answer)
        } else {
            let flow = (&secret, b"flow".as_slice());
            match Connection::from_cookie(flow, start, &arrival, &mut Nowhere, &mut context) {
                Some((mut connection, events)) => {
                    connection.set(self.settings);
                    self.connection = Some(connection);
                    self.note(events);
                    self.send();
                    None
                }
                None => reset_for(header, segment.length),
            }
        };
        if let Some(header) = answer {
            let sent = self.relative(&Transmit {
                header,
                offset: 0,
                length: 0,
                mss: 0,
                is_ecn_capable: false,
            });
            self.sent.push_back((self.now, sent));
        }
    }

    /// The next segment must have left at this time, and have all fields that are named.
    fn expect(&mut self, expected: &Segment) -> Result<(), String> {
        let Some((at, segment)) = self.sent.pop_front() else {
            return Err("no segment has left".to_owned());
        };
        if at.since(START).as_millis() != self.now.since(START).as_millis() {
            return Err(format!("{} was expected now", shown(at, &segment)));
        }
        let mut found = segment.clone();
        found.window = found.window.filter(|_| expected.window.is_some());
        found.check_absent(&expected.absent)?;
        found.is_ecn_capable = found
            .is_ecn_capable
            .filter(|_| expected.is_ecn_capable.is_some());
        found.timestamps = found.timestamps.filter(|_| expected.timestamps.is_some());
        if found.flags.contains(Flags::SYN) {
            found.mss = found.mss.filter(|_| expected.mss.is_some());
            found.scale = found.scale.filter(|_| expected.scale.is_some());
            found.has_sack_permitted &= expected.has_sack_permitted;
        }
        if found == *expected {
            return Ok(());
        }
        Err(format!("{} has left instead", shown(at, &segment)))
    }

    fn check_state(&self, name: &str) -> Result<(), String> {
        let found = self.state();
        if found == name {
            return Ok(());
        }
        Err(format!("the state is {found}"))
    }

    /// The state as scripts name it.
    pub(crate) fn state(&self) -> String {
        let state = self
            .connection
            .as_ref()
            .map_or(StateName::Closed, Connection::state);
        match (state, self.closed) {
            (StateName::SynSent, _) => "SYN-SENT".to_owned(),
            (StateName::SynReceived, _) => "SYN-RECEIVED".to_owned(),
            (StateName::Established, _) => "ESTABLISHED".to_owned(),
            (StateName::FinWait1, _) => "FIN-WAIT-1".to_owned(),
            (StateName::FinWait2, _) => "FIN-WAIT-2".to_owned(),
            (StateName::CloseWait, _) => "CLOSE-WAIT".to_owned(),
            (StateName::Closing, _) => "CLOSING".to_owned(),
            (StateName::LastAck, _) => "LAST-ACK".to_owned(),
            (StateName::TimeWait, _) => "TIME-WAIT".to_owned(),
            (StateName::Closed, Some(reason)) => format!("CLOSED {reason:?}"),
            (StateName::Closed, None) => "CLOSED".to_owned(),
        }
    }

    /// A segment of this side in the numbers of the script.
    fn relative(&self, transmit: &Transmit) -> Segment {
        let header = &transmit.header;
        let options = &header.options;
        // The reset of a connection that is not synchronised has the peer's number.
        let block = |block: &SackBlock| [block.left - self.irs, block.right - self.irs];
        Segment {
            flags: header.flags,
            seq: header.seq - self.iss,
            length: transmit.length,
            ack: header.ack.map(|ack| ack - self.irs),
            window: Some(header.window),
            mss: options.mss,
            scale: options.window_scale,
            has_sack_permitted: options.sack_permitted,
            timestamps: options.timestamps.map(|one| [one.value, one.echo]),
            sack: options.sack.as_slice().iter().map(block).collect(),
            urgent: header.urgent,
            is_congested: false,
            absent: Vec::new(),
            is_ecn_capable: Some(transmit.is_ecn_capable),
            step: None,
        }
    }

    /// The numbers of an open connection.
    pub(crate) fn info(&mut self) -> Option<Info> {
        let info = self.context(|connection, context| connection.info(context));
        info.flatten()
    }

    /// Compares a number of the connection or a counter.
    fn check_figure(&mut self, name: &str, expected: u32) -> Result<(), String> {
        let info = self.info().ok_or("the connection is not open")?;
        let found = match name {
            "cwnd" => info.cwnd.into(),
            "ssthresh" => info.ssthresh.into(),
            "in_flight" => info.in_flight.into(),
            "lost" => info.lost.into(),
            "srtt" => info.srtt.unwrap_or_default().as_millis(),
            "rto" => info.rto.as_millis(),
            "timeouts" => self.counters.timeouts,
            "spurious_rtos" => self.counters.spurious_rtos,
            "loss_probes" => self.counters.loss_probes,
            "loss_probe_recovery" => self.counters.loss_probe_recovery,
            "sack_recovery" => self.counters.sack_recovery,
            "reno_recovery" => self.counters.reno_recovery,
            "sack_reneging" => self.counters.sack_reneging,
            "dsack_recv" => self.counters.dsack_recv,
            "paws_estab" => self.counters.paws_estab,
            other => return Err(format!("{other} is not a call")),
        };
        if found == u64::from(expected) {
            return Ok(());
        }
        Err(format!("{name} is {found}"))
    }
}

/// A segment of the peer, whose acknowledgements count from `iss`.
fn absolute(segment: &Segment, iss: SeqNum, irs: SeqNum) -> Header {
    let block = |[left, right]: &[u32; 2]| SackBlock {
        left: iss + *left,
        right: iss + *right,
    };
    Header {
        ports: Ports {
            source: 0,
            destination: 0,
        },
        seq: irs + segment.seq,
        ack: segment.ack.map(|ack| iss + ack),
        flags: segment.flags,
        window: segment.window.unwrap_or(0),
        urgent: segment.urgent,
        options: Options {
            mss: segment.mss,
            window_scale: segment.scale,
            sack_permitted: segment.has_sack_permitted,
            timestamps: segment
                .timestamps
                .map(|[value, echo]| Timestamps { value, echo }),
            sack: segment.sack.iter().map(block).collect(),
            malformed: false,
        },
    }
}
