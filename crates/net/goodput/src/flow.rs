//! One end of a connection with an application that always writes, or always reads.
//!
//! The stream is all alike, so that buffers are numbers; contents are what the tests of the engine
//! are for.

use saiga_tcp::{Arrival, Config, Connection, Context, Counters, Events, Instant, Place, Start};
use saiga_wire::SeqNum;
use saiga_wire::tcp::Header;

/// Bytes of a send buffer and of a receive buffer: more than each path of the comparison holds.
pub const BUFFER: u32 = 8 << 20;

/// A segment on its way.
#[derive(Debug, Clone)]
pub struct Packet {
    /// Index of the flow.
    pub flow: usize,
    /// The header.
    pub header: Header,
    /// Bytes of the payload.
    pub length: u32,
}

impl Packet {
    /// Bytes of the packet with IPv4.
    #[must_use]
    pub fn bytes(&self) -> u32 {
        let header = u32::try_from(self.header.len_bytes()).unwrap_or(u32::MAX);
        20 + header + self.length
    }
}

/// One end.
#[derive(Debug)]
pub struct End {
    connection: Connection,
    config: Config,
    counters: Counters,
    /// Whether the application writes. If not, it reads.
    is_writer: bool,
    /// Bytes in the send buffer.
    buffered: u32,
    read: u64,
}

/// The bytes of the stream do not matter.
struct Nowhere;

impl Place for Nowhere {
    fn place(&mut self, _from: u32, _to: u32, _length: u32) {}
}

/// The numbers of a new connection.
fn start(random: &mut fastrand::Rng) -> Start {
    Start {
        iss: SeqNum(random.u32(..)),
        timestamp_offset: random.u32(..),
        buffer: BUFFER,
    }
}

impl End {
    /// Begins a connection whose application writes without end.
    #[must_use]
    pub fn connect(config: &Config, random: &mut fastrand::Rng, now: Instant) -> Self {
        let mut counters = Counters::default();
        let mut context = Context {
            now,
            config,
            counters: &mut counters,
        };
        let connection = Connection::connect(start(random), &mut context);
        let mut end = Self::with(connection, config, counters, true);
        end.write(now);
        end
    }

    /// Accepts a connection whose application reads at once.
    #[must_use]
    pub fn accept(config: &Config, random: &mut fastrand::Rng, syn: &Header, now: Instant) -> Self {
        let mut counters = Counters::default();
        let mut context = Context {
            now,
            config,
            counters: &mut counters,
        };
        let connection = Connection::accept(start(random), syn, &mut context);
        Self::with(connection, config, counters, false)
    }

    fn with(connection: Connection, config: &Config, counters: Counters, is_writer: bool) -> Self {
        Self {
            connection,
            config: config.clone(),
            counters,
            is_writer,
            buffered: 0,
            read: 0,
        }
    }

    fn call<R>(
        &mut self,
        now: Instant,
        call: impl FnOnce(&mut Connection, &mut Context<'_>) -> R,
    ) -> R {
        let mut context = Context {
            now,
            config: &self.config,
            counters: &mut self.counters,
        };
        call(&mut self.connection, &mut context)
    }

    /// Bytes that the application has read.
    #[must_use]
    pub const fn read(&self) -> u64 {
        self.read
    }

    /// What the engine counted.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// The next time-out.
    #[must_use]
    pub fn next_timeout(&mut self, now: Instant) -> Option<Instant> {
        self.call(now, |connection, context| connection.next_timeout(context))
    }

    /// Handles what is due.
    pub fn on_timeout(&mut self, now: Instant) {
        let events = self.call(now, Connection::on_timeout);
        self.note(&events, now);
    }

    /// Takes a segment.
    pub fn on_packet(&mut self, header: &Header, length: u32, is_marked: bool, now: Instant) {
        let arrival = Arrival {
            header,
            length,
            is_congested: is_marked,
        };
        let events = self.call(now, |connection, context| {
            connection.on_segment(&arrival, &mut Nowhere, context)
        });
        self.note(&events, now);
    }

    fn note(&mut self, events: &Events, now: Instant) {
        self.buffered -= events.acked;
        if events.readable > 0 {
            self.read += u64::from(events.readable);
            self.connection.on_read(events.readable);
        }
        if self.is_writer {
            self.write(now);
        }
    }

    /// Fills the send buffer, in pieces of 64 KiB as an application would.
    fn write(&mut self, now: Instant) {
        const PIECE: u32 = 64 << 10;
        while BUFFER - self.buffered >= PIECE {
            self.buffered += PIECE;
            self.call(now, |connection, context| {
                connection.on_write(PIECE, context)
            });
        }
    }

    /// The next segment to send: its header and the bytes of its payload, at most one full segment.
    pub fn transmit(&mut self, now: Instant) -> Option<(Header, u32)> {
        let segment = self.call(now, |connection, context| connection.transmit(1, context))?;
        Some((segment.header, segment.length))
    }
}
