//! From the bytes of a connection to requests and responses.
//!
//! A [`Conversation`] finds the protocol and feeds its parser. When bytes are missing or contradict
//! the protocol, it counts in turns, and tries the parser again at the next turn: there a request
//! begins, if client and server speak in turns at all.

mod detect;
mod frames;
mod http;
mod kind;
mod mysql;
mod outstanding;
mod postgres;
mod resp;

use crate::{Protocol, Timestamp, traffic::Sink};
pub use kind::Kind;
use outstanding::Outstanding;

/// Parsers that fail this often without an answer in between are not tried again.
const MOST_FAILURES: u8 = 8;

/// The sender of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// Consecutive bytes of one direction.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Chunk<'a> {
    Bytes(&'a [u8]),
    /// Bytes that were sent, but are not in the capture.
    Missing(u64),
}

impl<'a> Chunk<'a> {
    fn is_empty(&self) -> bool {
        match self {
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Missing(count) => *count == 0,
        }
    }

    /// Takes up to `most` bytes from the front.
    fn take(&mut self, most: u64) -> Chunk<'a> {
        match self {
            Self::Bytes(bytes) => {
                let most = usize::try_from(most).unwrap_or(usize::MAX).min(bytes.len());
                let (front, rest) = bytes.split_at(most);
                *bytes = rest;
                Chunk::Bytes(front)
            }
            Self::Missing(count) => {
                let front = most.min(*count);
                *count -= front;
                Chunk::Missing(front)
            }
        }
    }

    fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Missing(count) => *count,
        }
    }
}

/// Why a parser stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    /// Bytes are missing or contradict the protocol.
    Lost,
    /// From here on, the bytes follow another protocol (TLS, compression, replication).
    Opaque,
}

/// What a parser needs beside the bytes.
struct Context<'a, 'b> {
    side: Side,
    at: Timestamp,
    requests: &'a mut Outstanding,
    sink: &'a mut Sink<'b>,
}

impl Context<'_, '_> {
    fn begin(&mut self, start: Timestamp, kind: Kind) -> Result<(), Trouble> {
        self.requests.begin(start, kind, self.sink)
    }

    fn responds(&mut self) {
        self.requests.responds(self.at);
    }

    fn end(&mut self) {
        self.requests.end(self.at, self.sink);
    }
}

#[derive(Debug)]
enum Parser {
    Unknown,
    None,
    MySql(Box<mysql::MySql>),
    Postgres(Box<postgres::Postgres>),
    Resp(Box<resp::Resp>),
    Http(Box<http::Http>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The parser follows.
    Following,
    /// The parser is lost; requests are counted in turns.
    Adrift,
}

/// The requests of one connection.
#[derive(Debug)]
pub(crate) struct Conversation {
    parser: Parser,
    state: State,
    failures: u8,
    /// The first answer behind a loss is still to come.
    is_regaining: bool,
    /// The capture has the connection from its first byte.
    is_whole: bool,
    hint: Option<Protocol>,
    protocol: Option<Protocol>,
    requests: Outstanding,
}

impl Conversation {
    /// `hint` is the protocol of the server's port, if it is known.
    pub(crate) fn new(is_whole: bool, hint: Option<Protocol>) -> Self {
        Self {
            parser: Parser::Unknown,
            state: State::Following,
            failures: 0,
            is_regaining: false,
            is_whole,
            hint,
            protocol: None,
            requests: Outstanding::default(),
        }
    }

    pub(crate) fn on_chunk(
        &mut self,
        side: Side,
        at: Timestamp,
        chunk: Chunk<'_>,
        sink: &mut Sink<'_>,
    ) {
        if chunk.is_empty() {
            return;
        }
        if matches!(self.parser, Parser::Unknown) {
            self.detect(side, chunk, sink);
        }
        if self.state == State::Adrift
            && side == Side::Client
            && self.requests.front_has_response()
            && !matches!(self.parser, Parser::None)
        {
            self.requests.end_turn(sink);
            sink.budget.give_bytes(self.parser.held());
            self.parser.restart();
            self.state = State::Following;
            self.is_regaining = true;
        }
        match self.state {
            State::Following => self.parse(side, at, chunk, sink),
            State::Adrift => self.turn(side, at, sink),
        }
    }

    fn detect(&mut self, side: Side, chunk: Chunk<'_>, sink: &mut Sink<'_>) {
        let Some(found) = detect::detect(side, chunk, self.is_whole, self.hint) else {
            return;
        };
        self.parser = match found {
            Protocol::MySql => Parser::MySql(Box::new(mysql::MySql::new(self.is_whole))),
            Protocol::Postgres => {
                let is_whole = self.is_whole || detect::is_postgres_startup(side, chunk);
                Parser::Postgres(Box::new(postgres::Postgres::new(is_whole)))
            }
            Protocol::Resp => Parser::Resp(Box::default()),
            Protocol::Http => Parser::Http(Box::default()),
            Protocol::Turns => Parser::None,
        };
        if found == Protocol::Turns {
            self.state = State::Adrift;
            sink.server.parsing.opaque += u64::from(detect::is_tls(chunk));
        }
        self.protocol = Some(found);
    }

    fn parse(&mut self, side: Side, at: Timestamp, chunk: Chunk<'_>, sink: &mut Sink<'_>) {
        let answered = sink.server.requests.answered;
        let context = Context {
            side,
            at,
            requests: &mut self.requests,
            sink,
        };
        let result = match &mut self.parser {
            Parser::Unknown | Parser::None => Ok(()),
            Parser::MySql(parser) => parser.feed(chunk, context),
            Parser::Postgres(parser) => parser.feed(chunk, context),
            Parser::Resp(parser) => parser.feed(chunk, context),
            Parser::Http(parser) => parser.feed(chunk, context),
        };
        if sink.server.requests.answered > answered {
            self.failures = 0;
            sink.server.parsing.regained += u64::from(self.is_regaining);
            self.is_regaining = false;
        }
        let Err(trouble) = result else {
            return;
        };
        self.state = State::Adrift;
        let parsing = &mut sink.server.parsing;
        match trouble {
            Trouble::Opaque => {
                parsing.opaque += 1;
                self.give_up(sink);
            }
            Trouble::Lost => {
                parsing.lost += 1;
                self.failures += 1;
                if self.failures == MOST_FAILURES {
                    parsing.given_up += 1;
                    self.give_up(sink);
                }
            }
        }
        self.requests.keep_first(at, sink);
        self.turn(side, at, sink);
    }

    fn give_up(&mut self, sink: &mut Sink<'_>) {
        sink.budget.give_bytes(self.parser.held());
        self.parser = Parser::None;
        self.protocol = Some(Protocol::Turns);
    }

    fn turn(&mut self, side: Side, at: Timestamp, sink: &mut Sink<'_>) {
        match side {
            Side::Server => self.requests.responds(at),
            Side::Client => {
                if self.requests.front_has_response() {
                    self.requests.end_turn(sink);
                }
                if self.requests.is_empty() {
                    // Beyond the limit it is counted there.
                    let _ = self.requests.begin(at, Kind::Other, sink);
                }
            }
        }
    }

    /// The connection, or the capture, ends.
    pub(crate) fn finish(&mut self, at: Timestamp, sink: &mut Sink<'_>) {
        if let Parser::Http(parser) = &mut self.parser
            && self.state == State::Following
            && parser.ends_with_connection()
        {
            self.requests.end_turn(sink);
        }
        if self.state == State::Adrift && self.requests.front_has_response() {
            self.requests.end_turn(sink);
        }
        self.requests.abandon(at, sink);
        if let Some(protocol) = self.protocol.take() {
            sink.protocol(protocol);
        }
        sink.budget.give_bytes(self.parser.held());
        self.parser = Parser::None;
        self.state = State::Adrift;
    }
}

impl Parser {
    /// Buffered bytes, which count in the budget.
    fn held(&self) -> usize {
        match self {
            Self::Http(parser) => parser.held(),
            Self::Unknown | Self::None | Self::MySql(_) | Self::Postgres(_) | Self::Resp(_) => 0,
        }
    }

    /// Begins again between two requests.
    fn restart(&mut self) {
        match self {
            Self::Unknown | Self::None => {}
            Self::MySql(parser) => parser.restart(),
            Self::Postgres(parser) => parser.restart(),
            Self::Resp(parser) => **parser = resp::Resp::default(),
            Self::Http(parser) => **parser = http::Http::default(),
        }
    }
}
