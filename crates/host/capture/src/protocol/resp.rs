//! RESP, versions 2 and 3: complete values are counted in both directions, and each reply belongs
//! to the first command without one.
//!
//! Source: redis.io, "Redis serialization protocol specification". Deliberately absent: commands
//! that get no reply or several (CLIENT REPLY, SUBSCRIBE of several channels), and replication.

use super::{Chunk, Context, Side, Trouble, kind::Kind};
use crate::Timestamp;

/// Arrays in arrays that are followed; replies of scripts are rarely deeper than three.
const DEEPEST: usize = 16;
/// The longest command that is of a known kind.
const LONGEST_COMMAND: usize = 12;
/// Redis refuses longer bulk strings unless it is told otherwise.
const LONGEST_BULK: u64 = 1 << 40;
const LONGEST_ARRAY: u64 = 1 << 32;

#[derive(Debug, Clone, Copy)]
enum State {
    /// In front of the first byte of a value.
    Value,
    /// Within the number behind a type byte.
    Number {
        kind: u8,
        value: u64,
        is_negative: bool,
    },
    /// Within a line whose text does not matter.
    Line,
    /// Within a line that is a command without an array.
    Inline { is_empty: bool },
    /// Within a string and the line end behind it.
    Bulk { left: u64 },
}

/// One direction.
#[derive(Debug)]
struct Values {
    state: State,
    /// Values that are still to come in each of the open arrays.
    open: [u64; DEEPEST],
    depth: usize,
    is_push: bool,
    is_attribute: bool,
    /// The first string of a command, or as much of it as matters.
    command: [u8; LONGEST_COMMAND],
    command_length: usize,
    /// The string that is read is the first one.
    is_first: bool,
}

impl Default for Values {
    fn default() -> Self {
        Self {
            state: State::Value,
            open: [0; DEEPEST],
            depth: 0,
            is_push: false,
            is_attribute: false,
            command: [0; LONGEST_COMMAND],
            command_length: 0,
            is_first: false,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Resp {
    client: Values,
    server: Values,
    /// Time of the first byte of the client's present command.
    started: Timestamp,
}

/// What is complete.
enum Complete {
    Nothing,
    Value,
    /// A message that no command asked for.
    Push,
}

impl Resp {
    pub(super) fn feed(
        &mut self,
        mut chunk: Chunk<'_>,
        mut context: Context<'_, '_>,
    ) -> Result<(), Trouble> {
        while !chunk.is_empty() {
            match context.side {
                Side::Client => {
                    if self.client.is_between() {
                        self.started = context.at;
                    }
                    if let Complete::Value = self.client.next(&mut chunk, Side::Client)? {
                        let length = self.client.command_length;
                        let kind = Kind::of_resp(&self.client.command[..length]);
                        context.begin(self.started, kind)?;
                    }
                }
                Side::Server => {
                    context.responds();
                    if let Complete::Value = self.server.next(&mut chunk, Side::Server)? {
                        context.end();
                    }
                }
            }
        }
        Ok(())
    }
}

impl Values {
    fn is_between(&self) -> bool {
        matches!(self.state, State::Value) && self.depth == 0
    }

    /// Takes bytes until a value of the highest level is complete, or all are taken.
    fn next(&mut self, chunk: &mut Chunk<'_>, side: Side) -> Result<Complete, Trouble> {
        loop {
            if let State::Bulk { left } = self.state {
                let part = chunk.take(left);
                self.keep(part);
                let left = left - part.len();
                self.state = State::Bulk { left };
                if left > 0 {
                    return Ok(Complete::Nothing);
                }
                let complete = self.value_ends();
                if !matches!(complete, Complete::Nothing) {
                    return Ok(complete);
                }
                continue;
            }
            let byte = match chunk {
                Chunk::Bytes([byte, rest @ ..]) => {
                    let byte = *byte;
                    *chunk = Chunk::Bytes(rest);
                    byte
                }
                Chunk::Bytes([]) | Chunk::Missing(0) => return Ok(Complete::Nothing),
                Chunk::Missing(_) => return Err(Trouble::Lost),
            };
            let complete = self.on_byte(byte, side)?;
            if !matches!(complete, Complete::Nothing) {
                return Ok(complete);
            }
        }
    }

    fn on_byte(&mut self, byte: u8, side: Side) -> Result<Complete, Trouble> {
        match &mut self.state {
            State::Value => self.state = self.first(byte, side)?,
            State::Line => {
                if byte == b'\n' {
                    return Ok(self.value_ends());
                }
            }
            State::Inline { is_empty } => {
                if byte == b'\n' {
                    let was_empty = *is_empty;
                    self.state = State::Value;
                    return Ok(if was_empty {
                        Complete::Nothing
                    } else {
                        Complete::Value
                    });
                }
                *is_empty &= byte == b'\r';
                self.keep_inline(byte);
            }
            State::Number {
                value,
                is_negative,
                kind,
            } => match byte {
                b'0'..=b'9' => {
                    *value = value
                        .saturating_mul(10)
                        .saturating_add(u64::from(byte - b'0'));
                }
                b'-' if *value == 0 => *is_negative = true,
                b'\r' => {}
                b'\n' => {
                    let (kind, value, is_negative) = (*kind, *value, *is_negative);
                    return self.number_ends(kind, value, is_negative);
                }
                _ => return Err(Trouble::Lost),
            },
            // `next` takes these bytes.
            State::Bulk { .. } => {}
        }
        Ok(Complete::Nothing)
    }

    fn first(&mut self, byte: u8, side: Side) -> Result<State, Trouble> {
        if self.depth == 0 {
            self.is_push = byte == b'>';
            self.command_length = 0;
            self.is_first = true;
        }
        match (side, byte) {
            (Side::Client, b'*') if self.depth == 0 => {}
            (Side::Client, b'$') if self.depth > 0 => {}
            (Side::Client, _) if self.depth == 0 => {
                if !matches!(byte, b'\r' | b' '..=b'~') {
                    return Err(Trouble::Lost);
                }
                self.keep_inline(byte);
                return Ok(State::Inline {
                    is_empty: byte == b'\r',
                });
            }
            (Side::Client, _) => return Err(Trouble::Lost),
            (Side::Server, b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(') => {
                return Ok(State::Line);
            }
            (Side::Server, b'$' | b'!' | b'=' | b'*' | b'~' | b'%' | b'>') => {}
            (Side::Server, b'|') if self.depth == 0 => self.is_attribute = true,
            (Side::Server, _) => return Err(Trouble::Lost),
        }
        Ok(State::Number {
            kind: byte,
            value: 0,
            is_negative: false,
        })
    }

    fn number_ends(
        &mut self,
        kind: u8,
        value: u64,
        is_negative: bool,
    ) -> Result<Complete, Trouble> {
        self.state = State::Value;
        if is_negative {
            return Ok(self.value_ends());
        }
        if matches!(kind, b'$' | b'!' | b'=') {
            if value > LONGEST_BULK {
                return Err(Trouble::Lost);
            }
            self.state = State::Bulk { left: value + 2 };
            return Ok(Complete::Nothing);
        }
        if value > LONGEST_ARRAY || (value > 0 && self.depth == DEEPEST) {
            return Err(Trouble::Lost);
        }
        let values = if matches!(kind, b'%' | b'|') {
            2 * value
        } else {
            value
        };
        if values == 0 {
            return Ok(self.value_ends());
        }
        self.open[self.depth] = values;
        self.depth += 1;
        Ok(Complete::Nothing)
    }

    /// A value ends, and with it each array whose last value it is.
    fn value_ends(&mut self) -> Complete {
        self.state = State::Value;
        self.is_first = false;
        while let Some(outer) = self.depth.checked_sub(1) {
            self.open[outer] -= 1;
            if self.open[outer] > 0 {
                return Complete::Nothing;
            }
            self.depth = outer;
        }
        if std::mem::take(&mut self.is_attribute) {
            return Complete::Nothing;
        }
        if self.is_push {
            Complete::Push
        } else {
            Complete::Value
        }
    }

    fn keep_inline(&mut self, byte: u8) {
        self.is_first &= byte != b' ';
        self.keep(Chunk::Bytes(&[byte]));
    }

    fn keep(&mut self, part: Chunk<'_>) {
        if !self.is_first {
            return;
        }
        let Chunk::Bytes(bytes) = part else {
            return;
        };
        for byte in bytes.iter().take_while(|byte| **byte != b'\r') {
            if let Some(place) = self.command.get_mut(self.command_length) {
                *place = *byte;
                self.command_length += 1;
            }
        }
    }
}
