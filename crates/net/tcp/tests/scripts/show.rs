//! Segments and lines as scripts write them.

use std::fmt::{self, Display, Formatter};

use saiga_wire::tcp::Flags;

use crate::parse::Segment;

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
