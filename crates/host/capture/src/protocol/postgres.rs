//! PostgreSQL's frontend/backend protocol, version 3: a request is a query or a batch up to Sync,
//! and its response ends with ReadyForQuery.
//!
//! Source: chapter "Frontend/Backend Protocol" of the PostgreSQL documentation. Cancel requests,
//! replication and functions need no more than the same rule.

use super::{
    Chunk, Context, Side, Trouble,
    frames::{Frame, Frames},
    kind::Kind,
};
use crate::Timestamp;

const HEADER: usize = 5;
const STARTUP_HEADER: usize = 4;
/// The protocol's limit for messages is 1 GiB.
const LONGEST: u64 = 1 << 30;
const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;
const CLIENT_TAGS: &[u8] = b"QPBEDCSHFXdcfp";
const SERVER_TAGS: &[u8] = b"RKSZCDT123nstIGHWVEANdcv";

/// Where the connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The client's next message has no tag.
    Startup,
    /// The server answers a request for encryption with one byte.
    Encryption,
    /// Until the first ReadyForQuery.
    Login,
    Queries,
}

/// A batch of the extended protocol whose Sync is still to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Batch {
    None,
    /// It began at this time.
    Open(Timestamp, Kind),
    /// COPY FROM in the extended protocol: the server ignored Sync, and another one follows.
    Copying,
}

#[derive(Debug)]
pub(super) struct Postgres {
    phase: Phase,
    client: Frames,
    server: Frames,
    /// Time of the first byte of the client's present message.
    started: Timestamp,
    batch: Batch,
    last_is_batch: bool,
}

impl Postgres {
    /// `is_whole` says that the startup message comes first.
    pub(super) fn new(is_whole: bool) -> Self {
        let (phase, header) = if is_whole {
            (Phase::Startup, STARTUP_HEADER)
        } else {
            (Phase::Queries, HEADER)
        };
        Self {
            phase,
            client: Frames::new(header),
            server: Frames::new(HEADER),
            started: Timestamp::default(),
            batch: Batch::None,
            last_is_batch: false,
        }
    }

    /// Begins again, in front of a query.
    pub(super) fn restart(&mut self) {
        *self = Self::new(false);
    }

    pub(super) fn feed(
        &mut self,
        mut chunk: Chunk<'_>,
        mut context: Context<'_, '_>,
    ) -> Result<(), Trouble> {
        while !chunk.is_empty() {
            let done = match (context.side, self.phase) {
                (Side::Client, Phase::Startup) => self.startup(&mut chunk)?,
                (Side::Client, _) => self.client_message(&mut chunk, &mut context)?,
                (Side::Server, Phase::Encryption) => self.encryption(&mut chunk)?,
                (Side::Server, _) => self.server_message(&mut chunk, &mut context)?,
            };
            if !done {
                break;
            }
        }
        Ok(())
    }

    fn startup(&mut self, chunk: &mut Chunk<'_>) -> Result<bool, Trouble> {
        let length_of = |header: &[u8]| length(*header.first_chunk()?);
        let code = |frame: Frame<'_>| {
            frame
                .body
                .first_chunk()
                .map(|code| u32::from_be_bytes(*code))
        };
        match self.client.next(chunk, length_of, code)? {
            None => return Ok(false),
            Some(Some(SSL_REQUEST | GSS_REQUEST)) => self.phase = Phase::Encryption,
            Some(_) => {
                self.phase = Phase::Login;
                self.client = Frames::new(HEADER);
            }
        }
        Ok(true)
    }

    fn encryption(&mut self, chunk: &mut Chunk<'_>) -> Result<bool, Trouble> {
        match chunk.take(1) {
            Chunk::Bytes([b'N']) => {
                self.phase = Phase::Startup;
                Ok(true)
            }
            Chunk::Bytes([b'S' | b'G']) => Err(Trouble::Opaque),
            Chunk::Bytes(_) | Chunk::Missing(_) => Err(Trouble::Lost),
        }
    }

    fn client_message(
        &mut self,
        chunk: &mut Chunk<'_>,
        context: &mut Context<'_, '_>,
    ) -> Result<bool, Trouble> {
        if self.client.is_between() {
            self.started = context.at;
        }
        let message = |frame: Frame<'_>| (frame.header[0], kind(frame));
        let length_of = |header: &[u8]| message_length(header, CLIENT_TAGS);
        let Some((tag, kind)) = self.client.next(chunk, length_of, message)? else {
            return Ok(false);
        };
        if self.phase != Phase::Queries {
            return Ok(true);
        }
        match tag {
            b'Q' | b'F' => {
                self.last_is_batch = false;
                context.begin(self.started, kind)?;
            }
            b'P' | b'B' | b'E' | b'D' | b'C' | b'H' => match self.batch {
                Batch::Open(start, known) if known == Kind::Execute || known == Kind::Other => {
                    let better = if tag == b'P' { kind } else { known };
                    self.batch = Batch::Open(start, better);
                }
                Batch::Open(..) => {}
                Batch::None | Batch::Copying => self.batch = Batch::Open(self.started, kind),
            },
            b'S' => match std::mem::replace(&mut self.batch, Batch::None) {
                Batch::Copying => {}
                Batch::Open(start, kind) => {
                    self.last_is_batch = true;
                    context.begin(start, kind)?;
                }
                Batch::None => {
                    self.last_is_batch = true;
                    context.begin(self.started, Kind::Other)?;
                }
            },
            _ => {}
        }
        Ok(true)
    }

    fn server_message(
        &mut self,
        chunk: &mut Chunk<'_>,
        context: &mut Context<'_, '_>,
    ) -> Result<bool, Trouble> {
        context.responds();
        let length_of = |header: &[u8]| message_length(header, SERVER_TAGS);
        let Some(tag) = self
            .server
            .next(chunk, length_of, |frame| frame.header[0])?
        else {
            return Ok(false);
        };
        match (tag, self.phase) {
            (b'Z', Phase::Login) => self.phase = Phase::Queries,
            (b'Z', Phase::Queries) => context.end(),
            (b'G', Phase::Queries) if self.last_is_batch => self.batch = Batch::Copying,
            _ => {}
        }
        Ok(true)
    }
}

/// The kind of a client's message. The text of Parse stands behind the statement's name.
fn kind(frame: Frame<'_>) -> Kind {
    match frame.header[0] {
        b'Q' => Kind::of_sql(frame.body),
        b'P' => {
            let name = frame.body.iter().position(|byte| *byte == 0);
            name.map_or(Kind::Other, |end| Kind::of_sql(&frame.body[end + 1..]))
        }
        b'F' => Kind::Call,
        _ => Kind::Execute,
    }
}

fn message_length(header: &[u8], tags: &[u8]) -> Option<u64> {
    let (tag, rest) = header.split_first()?;
    tags.contains(tag)
        .then(|| length(*rest.first_chunk()?))
        .flatten()
}

/// Length of a body from the length in its header, which includes itself.
fn length(bytes: [u8; 4]) -> Option<u64> {
    u64::from(u32::from_be_bytes(bytes))
        .checked_sub(4)
        .filter(|length| *length <= LONGEST)
}
