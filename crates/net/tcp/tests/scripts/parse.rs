//! The lines of a script.

use std::collections::BTreeMap;

use saiga_wire::tcp::Flags;

/// What runs a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Engine,
    Kernel,
}

impl Side {
    const fn name(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Kernel => "kernel",
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::Engine => Self::Kernel,
            Self::Kernel => Self::Engine,
        }
    }
}

/// A line that does something.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// Number in the file.
    pub(crate) number: usize,
    /// Milliseconds since the line before.
    pub(crate) after_ms: u64,
    pub(crate) action: Action,
}

#[derive(Debug, Clone)]
pub(crate) enum Action {
    Config(BTreeMap<String, String>),
    /// A call with its argument.
    Call(String, u32),
    In(Segment),
    Out(Segment),
    State(String),
    /// ICMP: the segment with this number was too big, this many bytes without headers are not.
    TooBig(u32, u16),
}

/// A segment with the fields that are named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) flags: Flags,
    pub(crate) seq: u32,
    pub(crate) length: u32,
    pub(crate) ack: Option<u32>,
    pub(crate) window: Option<u16>,
    pub(crate) mss: Option<u16>,
    pub(crate) scale: Option<u8>,
    pub(crate) has_sack_permitted: bool,
    /// Timestamp and echo.
    pub(crate) timestamps: Option<[u32; 2]>,
    pub(crate) sack: Vec<[u32; 2]>,
    pub(crate) urgent: Option<u16>,
    pub(crate) is_congested: bool,
    /// Fields that the segment must not have.
    pub(crate) absent: Vec<String>,
    /// Whether a segment that leaves can be marked.
    pub(crate) is_ecn_capable: Option<bool>,
    /// Bytes of each segment of a burst.
    pub(crate) step: Option<u32>,
}

impl Segment {
    /// Fails if the segment has one of these fields; notes that it was asked.
    pub(crate) fn check_absent(&mut self, fields: &[String]) -> Result<(), String> {
        for field in fields {
            let is_there = match field.as_str() {
                "mss" => self.mss.is_some(),
                "ws" => self.scale.is_some(),
                "sackok" => self.has_sack_permitted,
                "ts" => self.timestamps.is_some(),
                other => return Err(format!("{other} is not a field that can be absent")),
            };
            if is_there {
                return Err(format!("the segment has {field}: {self:?}"));
            }
        }
        self.absent = fields.to_vec();
        Ok(())
    }
}

/// Begins the line that tells why the kernel does not run a script.
pub(crate) const DIFFERS: &str = "kernel differs:";

/// Reads the lines of a script that are for `side`.
pub(crate) fn lines(text: &str, side: Side) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if line.starts_with(DIFFERS) {
            continue;
        }
        let words = match words.iter().position(|word| word.starts_with('#')) {
            Some(comment) => &words[..comment],
            None => &words,
        };
        let words = match words.split_first() {
            Some((first, rest)) if *first == side.name() => rest,
            Some((first, _)) if *first == side.other().name() => continue,
            Some(_) => words,
            None => continue,
        };
        let parsed = line_of(number, words).map_err(|why| format!("line {number}: {why}"))?;
        lines.extend(parsed.split());
    }
    Ok(lines)
}

impl Line {
    /// The line once for each segment of a burst: PSH and FIN belong to the last one.
    fn split(self) -> Vec<Self> {
        let Action::Out(burst) = &self.action else {
            return vec![self];
        };
        let step = burst.step.unwrap_or(burst.length).max(1);
        let starts = (0..burst.length.max(1)).step_by(step as usize);
        let one = |start: u32| {
            let is_last = start + step >= burst.length;
            Self {
                after_ms: if start == 0 { self.after_ms } else { 0 },
                number: self.number,
                action: Action::Out(Segment {
                    seq: burst.seq + start,
                    length: step.min(burst.length - start),
                    flags: if is_last { burst.flags } else { Flags::NONE },
                    step: None,
                    ..burst.clone()
                }),
            }
        };
        starts.map(one).collect()
    }
}

fn line_of(number: usize, words: &[&str]) -> Result<Line, String> {
    let (after_ms, words) = match words[0].strip_prefix('+') {
        Some(ms) => (number_of(ms)?.into(), &words[1..]),
        None => (0, words),
    };
    let (first, rest) = words.split_first().ok_or("nothing follows the time")?;
    let action = match *first {
        "config" => Action::Config(
            rest.iter()
                .map(|word| pair(word))
                .collect::<Result<_, _>>()?,
        ),
        "<" => Action::In(segment(rest)?),
        ">" => Action::Out(segment(rest)?),
        "state" => Action::State(rest.join(" ")),
        "toobig" => match rest {
            [seq, mss] => Action::TooBig(number_of(seq)?, small(mss)?),
            _ => return Err("write toobig SEQ MSS".to_owned()),
        },
        call => {
            let argument = rest.first().map_or(Ok(0), |word| number_of(word))?;
            Action::Call(call.to_owned(), argument)
        }
    };
    Ok(Line {
        number,
        after_ms,
        action,
    })
}

fn pair(word: &str) -> Result<(String, String), String> {
    let (name, value) = word
        .split_once('=')
        .ok_or_else(|| format!("{word} has no ="))?;
    Ok((name.to_owned(), value.to_owned()))
}

fn number_of(word: &str) -> Result<u32, String> {
    word.parse().map_err(|_| format!("{word} is not a number"))
}

fn small(word: &str) -> Result<u16, String> {
    word.parse()
        .map_err(|_| format!("{word} is not a number below 65536"))
}

fn segment(words: &[&str]) -> Result<Segment, String> {
    let [flags, numbers, fields @ ..] = words else {
        return Err("a segment has flags and a number".to_owned());
    };
    let mut segment = Segment::default();
    let mut has_ack = false;
    for letter in flags.chars() {
        segment.flags = segment.flags
            | match letter {
                'S' => Flags::SYN,
                'F' => Flags::FIN,
                'R' => Flags::RST,
                'P' => Flags::PSH,
                'E' => Flags::ECE,
                'C' => Flags::CWR,
                '.' => {
                    has_ack = true;
                    Flags::NONE
                }
                '-' => Flags::NONE,
                other => return Err(format!("{other} is not a flag")),
            };
    }
    let (seq, length) = numbers.split_once('+').unwrap_or((numbers, "0"));
    (segment.seq, segment.length) = (number_of(seq)?, number_of(length)?);
    let mut fields = fields.iter();
    while let Some(field) = fields.next() {
        let mut next = || fields.next().ok_or_else(|| format!("{field} has no value"));
        match *field {
            "ack" => segment.ack = Some(number_of(next()?)?),
            "win" => segment.window = Some(small(next()?)?),
            "mss" => segment.mss = Some(small(next()?)?),
            "ws" => segment.scale = u8::try_from(small(next()?)?).ok(),
            "sackok" => segment.has_sack_permitted = true,
            "ts" => segment.timestamps = Some([number_of(next()?)?, number_of(next()?)?]),
            "urg" => segment.urgent = Some(small(next()?)?),
            "no" => segment.absent.push((*next()?).to_owned()),
            "by" => segment.step = Some(number_of(next()?)?),
            "ce" => segment.is_congested = true,
            "ect" => segment.is_ecn_capable = Some(true),
            "noect" => segment.is_ecn_capable = Some(false),
            "sack" => {
                let (left, right) = next()?.split_once(':').ok_or("write sack LEFT:RIGHT")?;
                segment.sack.push([number_of(left)?, number_of(right)?]);
            }
            other => return Err(format!("{other} is not a field")),
        }
    }
    if has_ack != segment.ack.is_some() {
        return Err("the flag . and the field ack go together".to_owned());
    }
    Ok(segment)
}
