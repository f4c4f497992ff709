//! What every call gets: the present instant, the settings and the counters.

use saiga_wire::tcp::Header;

use crate::config::Config;
use crate::counters::Counters;
use crate::time::Instant;

/// The surroundings of a call.
#[derive(Debug)]
pub struct Context<'a> {
    /// The present. It does not run backwards between two calls for a connection.
    pub now: Instant,
    /// Settings, the same in all calls for a connection.
    pub config: &'a Config,
    /// Counters of the worker.
    pub counters: &'a mut Counters,
}

/// A segment that belongs to the connection. Its checksum was right.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// The header.
    pub header: &'a Header,
    /// Bytes of the payload. A device that merges segments (GRO) gives one long segment.
    pub length: u32,
    /// Whether the IP header has Congestion Experienced (RFC 3168 §5).
    pub is_congested: bool,
}

impl Arrival<'_> {
    /// `SEG.LEN`: the payload and one for each of SYN and FIN (RFC 9293 §3.4).
    pub(crate) fn sequence_length(&self) -> u32 {
        use saiga_wire::tcp::Flags;
        let one = |flag| u32::from(self.header.flags.contains(flag));
        self.length + one(Flags::SYN) + one(Flags::FIN)
    }
}
