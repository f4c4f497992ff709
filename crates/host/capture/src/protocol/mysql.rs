//! MySQL's client/server protocol: commands, and where their responses end.
//!
//! Source: "Client/Server Protocol" of the MySQL Source Code Documentation, and the protocol pages
//! of the MariaDB documentation. Whether a column list and rows end with EOF packets or with an OK
//! packet (`CLIENT_DEPRECATE_EOF`) is seen from the length of these packets.
//!
//! Deliberately absent: the compressed protocol and replication, which are counted in turns.

use std::collections::VecDeque;

use super::{
    Chunk, Context, Side, Trouble,
    frames::{Frame, Frames},
    kind::Kind,
};
use crate::Timestamp;

const HEADER: usize = 4;
/// A packet of this length goes on in the next one.
const LONGEST: u64 = 0xff_ffff;
const SSL_REQUEST: u64 = 32;
const CAPABILITY_COMPRESS: u32 = 1 << 5;
const CAPABILITY_SSL: u32 = 1 << 11;
const CAPABILITY_DEPRECATE_EOF: u32 = 1 << 24;
const CAPABILITY_ZSTD: u32 = 1 << 26;
const STATUS_MORE_RESULTS: u16 = 1 << 3;
const STATUS_CURSOR: u16 = 1 << 6;

const OK: u8 = 0x00;
const LOCAL_INFILE: u8 = 0xfb;
const EOF: u8 = 0xfe;
const ERR: u8 = 0xff;
/// Length of an EOF packet; an OK packet in its place has at least seven bytes.
const EOF_LENGTH: u64 = 5;
/// A row may begin with the byte of EOF: then a value of more than 16 MiB follows.
const LONGEST_EOF: u64 = LONGEST;

mod command {
    pub(super) const QUIT: u8 = 0x01;
    pub(super) const QUERY: u8 = 0x03;
    pub(super) const FIELD_LIST: u8 = 0x04;
    pub(super) const PING: u8 = 0x0e;
    pub(super) const STATISTICS: u8 = 0x09;
    pub(super) const CHANGE_USER: u8 = 0x11;
    pub(super) const BINLOG_DUMP: u8 = 0x12;
    pub(super) const REGISTER_REPLICA: u8 = 0x15;
    pub(super) const PREPARE: u8 = 0x16;
    pub(super) const EXECUTE: u8 = 0x17;
    pub(super) const LONG_DATA: u8 = 0x18;
    pub(super) const CLOSE: u8 = 0x19;
    pub(super) const FETCH: u8 = 0x1c;
    pub(super) const BINLOG_DUMP_GTID: u8 = 0x1e;
    pub(super) const LAST: u8 = 0x1f;
    pub(super) const BULK_EXECUTE: u8 = 0xfa;
}

/// Where the connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Until the server accepts the login.
    Login,
    Commands,
}

/// Where the response to the first outstanding command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reply {
    First,
    /// Definitions of this number of columns are still to come.
    Columns(u64),
    /// The packet behind the definitions: EOF, or the first row.
    BehindColumns,
    Rows,
    /// Definitions that follow the answer to PREPARE: of parameters, of columns.
    Prepared(u64, u64),
    /// The server reads a file of the client.
    Infile,
}

/// What a packet of the server means for the first command.
enum Step {
    Goes(Reply),
    Ends,
}

#[derive(Debug)]
pub(super) struct MySql {
    phase: Phase,
    client: Frames,
    server: Frames,
    /// The present packet continues one of the greatest length.
    client_continues: bool,
    server_continues: bool,
    /// Time of the first byte of the client's present packet.
    started: Timestamp,
    reply: Reply,
    /// The outstanding commands, as many as there are requests.
    commands: VecDeque<u8>,
    /// Whether EOF packets follow column definitions, as far as it is known.
    has_eof: Option<bool>,
}

impl MySql {
    /// `is_whole` says that the login comes first.
    pub(super) fn new(is_whole: bool) -> Self {
        Self {
            phase: if is_whole {
                Phase::Login
            } else {
                Phase::Commands
            },
            client: Frames::new(HEADER),
            server: Frames::new(HEADER),
            client_continues: false,
            server_continues: false,
            started: Timestamp::default(),
            reply: Reply::First,
            commands: VecDeque::new(),
            has_eof: None,
        }
    }

    /// Begins again, in front of a command.
    pub(super) fn restart(&mut self) {
        *self = Self {
            has_eof: self.has_eof,
            ..Self::new(false)
        };
    }

    pub(super) fn feed(
        &mut self,
        mut chunk: Chunk<'_>,
        mut context: Context<'_, '_>,
    ) -> Result<(), Trouble> {
        while !chunk.is_empty() {
            let done = match context.side {
                Side::Client => self.client_packet(&mut chunk, &mut context)?,
                Side::Server => self.server_packet(&mut chunk, &mut context)?,
            };
            if !done {
                break;
            }
        }
        Ok(())
    }

    fn client_packet(
        &mut self,
        chunk: &mut Chunk<'_>,
        context: &mut Context<'_, '_>,
    ) -> Result<bool, Trouble> {
        if self.client.is_between() && !self.client_continues {
            self.started = context.at;
        }
        let Some(packet) = self.client.next(chunk, body_length, Packet::of)? else {
            return Ok(false);
        };
        let continues = std::mem::replace(&mut self.client_continues, packet.length == LONGEST);
        if continues {
            return Ok(true);
        }
        match self.phase {
            Phase::Login => self.login(&packet)?,
            Phase::Commands => self.command(&packet, context)?,
        }
        Ok(true)
    }

    fn login(&mut self, packet: &Packet) -> Result<(), Trouble> {
        // Only the first packet has capabilities; the rest are passwords in one form or another.
        if packet.sequence != 1 {
            return Ok(());
        }
        let flags = packet
            .body()
            .first_chunk()
            .map(|bytes| u32::from_le_bytes(*bytes));
        let flags = flags.ok_or(Trouble::Lost)?;
        let is_ssl = packet.length == SSL_REQUEST && flags & CAPABILITY_SSL != 0;
        if is_ssl || flags & (CAPABILITY_COMPRESS | CAPABILITY_ZSTD) != 0 {
            return Err(Trouble::Opaque);
        }
        self.has_eof = Some(flags & CAPABILITY_DEPRECATE_EOF == 0);
        Ok(())
    }

    fn command(&mut self, packet: &Packet, context: &mut Context<'_, '_>) -> Result<(), Trouble> {
        // Part of a login, or of a file that the server asked for.
        if packet.sequence != 0 || self.reply == Reply::Infile {
            return Ok(());
        }
        let (command, rest) = packet.body().split_first().ok_or(Trouble::Lost)?;
        match *command {
            command::QUIT | command::LONG_DATA | command::CLOSE => return Ok(()),
            command::BINLOG_DUMP | command::BINLOG_DUMP_GTID | command::REGISTER_REPLICA => {
                return Err(Trouble::Opaque);
            }
            0..=command::LAST | command::BULK_EXECUTE => {}
            _ => return Err(Trouble::Lost),
        }
        let kind = match *command {
            command::QUERY => Kind::of_sql(rest),
            command::PREPARE => Kind::Prepare,
            command::EXECUTE | command::BULK_EXECUTE => Kind::Execute,
            command::FETCH => Kind::Fetch,
            command::PING => Kind::Ping,
            _ => Kind::Other,
        };
        context.begin(self.started, kind)?;
        self.commands.push_back(*command);
        Ok(())
    }

    fn server_packet(
        &mut self,
        chunk: &mut Chunk<'_>,
        context: &mut Context<'_, '_>,
    ) -> Result<bool, Trouble> {
        if !self.commands.is_empty() {
            context.responds();
        }
        let Some(packet) = self.server.next(chunk, body_length, Packet::of)? else {
            return Ok(false);
        };
        let continues = std::mem::replace(&mut self.server_continues, packet.length == LONGEST);
        if continues {
            return Ok(true);
        }
        if self.phase == Phase::Login {
            // The greeting has sequence 0; OK ends the login.
            if packet.sequence > 0 && packet.first()? == OK {
                self.phase = Phase::Commands;
            }
            return Ok(true);
        }
        let Some(command) = self.commands.front().copied() else {
            return self.unrequested(&packet, context);
        };
        match self.step(command, &packet)? {
            Step::Goes(reply) => self.reply = reply,
            Step::Ends => {
                self.commands.pop_front();
                self.reply = Reply::First;
                context.end();
            }
        }
        Ok(true)
    }

    /// An EOF that belongs to the definitions behind PREPARE, or the server's last message.
    fn unrequested(
        &mut self,
        packet: &Packet,
        context: &mut Context<'_, '_>,
    ) -> Result<bool, Trouble> {
        if packet.first()? == EOF && packet.length == EOF_LENGTH {
            self.has_eof = Some(true);
        } else {
            context.sink.server.parsing.unrequested += 1;
        }
        Ok(true)
    }

    fn step(&mut self, command: u8, packet: &Packet) -> Result<Step, Trouble> {
        let step = match self.reply {
            Reply::First => return self.first(command, packet),
            Reply::Columns(left) if left > 1 => Step::Goes(Reply::Columns(left - 1)),
            Reply::Columns(_) => Step::Goes(Reply::BehindColumns),
            Reply::BehindColumns => {
                let is_eof = packet.first()? == EOF && packet.length == EOF_LENGTH;
                self.has_eof = Some(is_eof);
                match is_eof {
                    // The rows wait for FETCH.
                    true if packet.status()? & STATUS_CURSOR != 0 => Step::Ends,
                    true => Step::Goes(Reply::Rows),
                    false => return row(packet),
                }
            }
            Reply::Rows => return row(packet),
            Reply::Prepared(parameters, columns) => {
                let is_eof = packet.first()? == EOF && packet.length == EOF_LENGTH;
                if is_eof && self.has_eof != Some(true) {
                    self.has_eof = Some(true);
                    // Another one follows the columns.
                    let columns = if parameters == 0 && columns > 0 {
                        columns + 1
                    } else {
                        columns
                    };
                    return Ok(self.prepared(parameters, columns));
                }
                match parameters.checked_sub(1) {
                    Some(left) => self.prepared(left, columns),
                    None => self.prepared(0, columns.saturating_sub(1)),
                }
            }
            Reply::Infile => match packet.first()? {
                ERR => Step::Ends,
                _ => result_end(packet)?,
            },
        };
        Ok(step)
    }

    fn first(&mut self, command: u8, packet: &Packet) -> Result<Step, Trouble> {
        let first = packet.first()?;
        if command == command::FETCH || command == command::FIELD_LIST {
            return row(packet);
        }
        if first == ERR || command == command::STATISTICS {
            return Ok(Step::Ends);
        }
        match command {
            command::QUERY | command::EXECUTE | command::BULK_EXECUTE => match first {
                OK => result_end(packet),
                LOCAL_INFILE => Ok(Step::Goes(Reply::Infile)),
                _ => columns(packet),
            },
            command::PREPARE => {
                let number = |at: usize| {
                    let bytes = packet.body().get(at..)?.first_chunk()?;
                    Some(u64::from(u16::from_le_bytes(*bytes)))
                };
                let columns = number(5).ok_or(Trouble::Lost)?;
                let parameters = number(7).ok_or(Trouble::Lost)?;
                // EOF packets count as one more definition of each list.
                let eof = u64::from(self.has_eof == Some(true));
                let with_eof = |count: u64| if count > 0 { count + eof } else { 0 };
                Ok(self.prepared(with_eof(parameters), with_eof(columns)))
            }
            command::CHANGE_USER if first != OK => Ok(Step::Goes(Reply::First)),
            _ => Ok(Step::Ends),
        }
    }

    fn prepared(&self, parameters: u64, columns: u64) -> Step {
        if parameters + columns == 0 {
            return Step::Ends;
        }
        Step::Goes(Reply::Prepared(parameters, columns))
    }
}

/// A number of columns. MariaDB may add a byte that says whether their definitions follow.
fn columns(packet: &Packet) -> Result<Step, Trouble> {
    let mut rest = packet.body();
    let count = length_encoded(&mut rest).ok_or(Trouble::Lost)?;
    let are_known = rest.first() == Some(&0);
    if count == 0 || count > u64::from(u16::MAX) {
        return Err(Trouble::Lost);
    }
    Ok(Step::Goes(if are_known {
        Reply::BehindColumns
    } else {
        Reply::Columns(count)
    }))
}

fn row(packet: &Packet) -> Result<Step, Trouble> {
    match packet.first()? {
        ERR => Ok(Step::Ends),
        EOF if packet.length < LONGEST_EOF && packet.is_eof() => result_end(packet),
        _ => Ok(Step::Goes(Reply::Rows)),
    }
}

/// OK or EOF: another result may follow.
fn result_end(packet: &Packet) -> Result<Step, Trouble> {
    let more = packet.status()? & STATUS_MORE_RESULTS != 0;
    Ok(if more {
        Step::Goes(Reply::First)
    } else {
        Step::Ends
    })
}

fn body_length(header: &[u8]) -> Option<u64> {
    let [a, b, c, _] = *header.first_chunk()?;
    Some(u64::from(u32::from_le_bytes([a, b, c, 0])))
}

fn length_encoded(bytes: &mut &[u8]) -> Option<u64> {
    let (first, rest) = bytes.split_first()?;
    let length = match first {
        0..=0xfa => 0,
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        0xfb | 0xff => return None,
    };
    let (number, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    Some(match length {
        0 => u64::from(*first),
        _ => number
            .iter()
            .rev()
            .fold(0, |value, byte| value << 8 | u64::from(*byte)),
    })
}

/// The kept part of a packet.
struct Packet {
    sequence: u8,
    length: u64,
    bytes: [u8; 40],
    kept: usize,
}

impl Packet {
    fn of(frame: Frame<'_>) -> Self {
        let mut bytes = [0; 40];
        let kept = frame.body.len().min(bytes.len());
        bytes[..kept].copy_from_slice(&frame.body[..kept]);
        let sequence = frame.header.last().copied().unwrap_or(0);
        Self {
            sequence,
            length: frame.length,
            bytes,
            kept,
        }
    }

    fn body(&self) -> &[u8] {
        &self.bytes[..self.kept]
    }

    fn first(&self) -> Result<u8, Trouble> {
        self.body().first().copied().ok_or(Trouble::Lost)
    }

    /// An EOF packet, or an OK packet in its place.
    fn is_eof(&self) -> bool {
        self.length == EOF_LENGTH || self.length >= 7
    }

    /// The status flags of an OK or EOF packet.
    fn status(&self) -> Result<u16, Trouble> {
        let flags = |bytes: &[u8]| Some(u16::from_le_bytes(*bytes.first_chunk()?));
        let found = if self.length == EOF_LENGTH && self.first()? == EOF {
            self.body().get(3..).and_then(flags)
        } else {
            let mut rest = self.body().get(1..).ok_or(Trouble::Lost)?;
            let numbers = length_encoded(&mut rest).and_then(|_| length_encoded(&mut rest));
            numbers.and_then(|_| flags(rest))
        };
        found.ok_or(Trouble::Lost)
    }
}
