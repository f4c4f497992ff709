//! Errors that a router reports about segments of the kernel.

use saiga_wire::SeqNum;
use saiga_wire::checksum::Sum;
use saiga_wire::ip::{Protocol, TrafficClass};
use saiga_wire::ipv4;

use crate::device::{LOCAL, PEER};
use crate::numbers::{LOCAL_PORT, PEER_PORT};

/// What is reported.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Error {
    /// Host unreachable.
    Unreachable,
    /// Port unreachable.
    Refused,
    SourceQuench,
    /// The MTU of a link without 40 bytes of headers; 0 if the router does not tell.
    TooBig {
        mss: u16,
    },
}

/// A packet with an error about the segment with this number, of which it quotes the IP header and
/// eight bytes (RFC 792).
pub(crate) fn packet(error: Error, seq: SeqNum) -> Vec<u8> {
    let (kind, code, mtu) = match error {
        Error::Unreachable => (3, 1, 0),
        Error::Refused => (3, 3, 0),
        Error::SourceQuench => (4, 0, 0),
        Error::TooBig { mss: 0 } => (3, 4, 0),
        Error::TooBig { mss } => (3, 4, mss + 40),
    };
    let mut quote = vec![0; ipv4::HEADER_BYTES];
    let quoted_bytes = 20;
    header(Protocol::TCP, true)
        .emit(quoted_bytes, &mut quote)
        .unwrap();
    quote.extend(LOCAL_PORT.to_be_bytes());
    quote.extend(PEER_PORT.to_be_bytes());
    quote.extend(seq.0.to_be_bytes());

    let mut message = vec![kind, code, 0, 0, 0, 0];
    message.extend(mtu.to_be_bytes());
    message.extend(quote);
    let checksum = Sum::of(&message).checksum();
    message[2..4].copy_from_slice(&checksum.to_be_bytes());

    let mut packet = vec![0; ipv4::HEADER_BYTES];
    header(Protocol::ICMP, false)
        .emit(message.len(), &mut packet)
        .unwrap();
    packet.extend(message);
    packet
}

fn header(protocol: Protocol, is_from_here: bool) -> ipv4::Header {
    let (source, destination) = if is_from_here {
        (LOCAL, PEER)
    } else {
        (PEER, LOCAL)
    };
    ipv4::Header {
        source,
        destination,
        protocol,
        traffic_class: TrafficClass(0),
        ttl: 64,
        id: 0,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: 0,
    }
}
