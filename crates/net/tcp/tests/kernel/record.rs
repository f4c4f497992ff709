//! A whole script from calls and segments to this side: the engine runs them, and what it sends is
//! what the script expects.

use crate::engine::{START, Script};
use crate::parse::{Action, Line, Segment};
use saiga_wire::tcp::Flags;

/// How long the connection is watched after the last step.
const AFTERMATH_MS: u64 = 100;

/// A call, or a segment to this side.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) line: Line,
    /// The segment acknowledges what was not sent, on purpose.
    pub(crate) is_odd: bool,
}

/// Steps and timers are at least so far apart.
const MARGIN_MS: u64 = 25;

/// Runs steps on the engine, and notes the segments that leave.
pub(crate) struct Recorder {
    script: Script,
    lines: Vec<Line>,
    /// Times since the begin: that of the last step, and that of the last line.
    step_ms: u64,
    line_ms: u64,
    /// The number behind the last one that was sent.
    top: u32,
    /// The process no longer holds the connection.
    is_released: bool,
}

/// The script of `steps`. Steps after the end of the connection are left out.
pub(crate) fn record(steps: &[Step]) -> Vec<Line> {
    let mut recorder = Recorder::new();
    for step in steps {
        recorder.step(step);
    }
    recorder.finish()
}

impl Recorder {
    pub(crate) fn new() -> Self {
        Self {
            script: Script::new(false),
            lines: Vec::new(),
            step_ms: 0,
            line_ms: 0,
            top: 1,
            is_released: false,
        }
    }

    /// Time since the begin.
    pub(crate) fn elapsed_ms(&self) -> u64 {
        self.script.now.since(START).as_millis()
    }

    /// The lines so far.
    pub(crate) fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The window of the peer as this side knows it, once the connection is open.
    pub(crate) fn peer_window(&mut self) -> Option<u32> {
        self.script.info().map(|info| info.snd_wnd)
    }

    /// Whether the connection has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.script.state().starts_with("CLOSED ")
    }

    /// Does a step at its time; leaves it out if it is not possible. What was not sent is not
    /// acknowledged, because steps before this one may have been left out.
    pub(crate) fn step(&mut self, step: &Step) {
        if self.is_over() {
            return;
        }
        self.pass(step.line.after_ms);
        let mut line = step.line.clone();
        if let Action::In(segment) = &mut line.action
            && !step.is_odd
        {
            self.limit(segment);
        }
        if self.is_over() || self.script.apply(&line).is_err() {
            return;
        }
        if let Action::Call(name, _) = &line.action {
            self.is_released |= name == "close" || name == "abort";
        }
        self.note(self.step_ms, line.action);
        // A whole active open takes time.
        self.step_ms = self.step_ms.max(self.elapsed_ms());
        self.line_ms = self.step_ms;
        self.drain();
    }

    fn limit(&self, segment: &mut Segment) {
        segment.ack = segment.ack.map(|ack| ack.min(self.top));
        segment.sack.retain(|[_, right]| *right <= self.top);
    }

    /// The lines, with what must hold at the end.
    pub(crate) fn finish(mut self) -> Vec<Line> {
        self.pass(AFTERMATH_MS);
        self.note(self.step_ms, Action::State(self.script.state()));
        if !self.is_over() && !self.is_released {
            let (readable, acked) = (self.script.readable, self.script.acked);
            self.note(self.step_ms, Action::Call("readable".to_owned(), readable));
            self.note(self.step_ms, Action::Call("acked".to_owned(), acked));
        }
        self.lines
    }

    /// Lets time pass, and timers expire; those as well that would expire soon afterwards, because
    /// the kernel may do first what is due nearly at the same time.
    pub(crate) fn pass(&mut self, ms: u64) {
        self.advance(self.step_ms + ms);
        while let Some(next) = self.script.next_timeout() {
            let next_ms = next.since(START).0.div_ceil(1000);
            if next_ms > self.step_ms + MARGIN_MS {
                break;
            }
            self.advance(next_ms);
        }
    }

    fn advance(&mut self, until_ms: u64) {
        self.step_ms = until_ms;
        let until = START + saiga_tcp::Micros::from_millis(until_ms);
        self.script.advance(until);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some((at, segment)) = self.script.sent.pop_front() {
            let one = |flag| u32::from(segment.flags.contains(flag));
            let end = segment.seq + segment.length + one(Flags::SYN) + one(Flags::FIN);
            if !segment.flags.contains(Flags::RST) {
                self.top = self.top.max(end);
            }
            self.note(at.since(START).as_millis(), Action::Out(segment));
        }
    }

    fn note(&mut self, at_ms: u64, action: Action) {
        self.lines.push(Line {
            number: self.lines.len() + 1,
            after_ms: at_ms - self.line_ms,
            action,
        });
        self.line_ms = at_ms;
    }
}
