//! Segments and lines as scripts write them.

use std::fmt::{self, Display, Formatter};

use saiga_wire::tcp::Flags;

use crate::parse::{Action, Line, Segment};

impl Display for Line {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.after_ms > 0 {
            write!(f, "+{} ", self.after_ms)?;
        }
        match &self.action {
            Action::Config(pairs) => {
                f.write_str("config")?;
                pairs
                    .iter()
                    .try_for_each(|(name, value)| write!(f, " {name}={value}"))
            }
            Action::Call(name, _) if !takes_number(name) => f.write_str(name),
            Action::Call(name, number) => write!(f, "{name} {number}"),
            Action::In(segment) => write!(f, "< {segment}"),
            Action::Out(segment) => write!(f, "> {segment}"),
            Action::TooBig(seq, mss) => write!(f, "toobig {seq} {mss}"),
            Action::State(name) => write!(f, "state {name}"),
        }
    }
}

fn takes_number(call: &str) -> bool {
    !matches!(
        call,
        "connect"
            | "established"
            | "accept"
            | "cookies"
            | "shutdown"
            | "close"
            | "abort"
            | "finished"
    )
}

impl Display for Segment {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        const LETTERS: [(Flags, &str); 6] = [
            (Flags::SYN, "S"),
            (Flags::FIN, "F"),
            (Flags::RST, "R"),
            (Flags::PSH, "P"),
            (Flags::ECE, "E"),
            (Flags::CWR, "C"),
        ];
        for (flag, letter) in LETTERS {
            if self.flags.contains(flag) {
                f.write_str(letter)?;
            }
        }
        match (self.ack, self.flags) {
            (Some(_), _) => f.write_str(".")?,
            (None, Flags::NONE) => f.write_str("-")?,
            (None, _) => {}
        }
        write!(f, " {}", self.seq)?;
        if self.length > 0 {
            write!(f, "+{}", self.length)?;
        }
        show(f, "ack", self.ack)?;
        show(f, "win", self.window)?;
        show(f, "mss", self.mss)?;
        show(f, "ws", self.scale)?;
        if self.has_sack_permitted {
            f.write_str(" sackok")?;
        }
        if let Some([value, echo]) = self.timestamps {
            write!(f, " ts {value} {echo}")?;
        }
        for [left, right] in &self.sack {
            write!(f, " sack {left}:{right}")?;
        }
        show(f, "urg", self.urgent)?;
        if self.is_ecn_capable == Some(true) {
            f.write_str(" ect")?;
        }
        if self.is_congested {
            f.write_str(" ce")?;
        }
        Ok(())
    }
}

fn show(f: &mut Formatter<'_>, name: &str, value: Option<impl Display>) -> fmt::Result {
    match value {
        Some(value) => write!(f, " {name} {value}"),
        None => Ok(()),
    }
}
