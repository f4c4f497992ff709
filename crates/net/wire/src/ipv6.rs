//! IPv6 headers and the extension headers behind them.
//!
//! Spec: RFC 8200 §3 and §4. Options and routing headers are checked and skipped; fragments are
//! described, not reassembled. A packet may have [`MAX_EXTENSIONS`] extension headers with
//! [`MAX_EXTENSION_BYTES`] bytes, which bounds the cost of a packet (RFC 8504 §5.3). Absent on
//! purpose: extension headers in emitted packets, jumbograms, source routing.

mod chain;
#[cfg(test)]
mod tests;

use crate::Malformed;
use crate::bytes::{get_ipv6, get_u16, get_u32, put};
use crate::emit::{EmitError, length_field, room_for};
use crate::ip::{Addresses, Fragment, Protocol, TrafficClass};
use chain::Chain;
use core::net::Ipv6Addr;

/// Length of a header without extension headers.
pub const HEADER_BYTES: usize = 40;
/// Extension headers that a packet may have.
pub const MAX_EXTENSIONS: usize = 8;
/// Bytes that the extension headers of a packet may have together.
pub const MAX_EXTENSION_BYTES: usize = 512;
/// Offset of the next header field.
const NEXT_HEADER_AT: usize = 6;
/// Length of a packet that every link carries without fragmentation (RFC 8200 §5).
pub const MIN_MTU_BYTES: usize = 1_280;

/// The fields of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header {
    /// Address of the sender.
    pub source: Ipv6Addr,
    /// Address of the receiver, or a multicast address.
    pub destination: Ipv6Addr,
    /// Protocol of the payload: the next header field of the last extension header.
    pub protocol: Protocol,
    /// DSCP and ECN.
    pub traffic_class: TrafficClass,
    /// Label of the packet's flow (RFC 6437), 20 bits.
    pub flow_label: u32,
    /// Number of routers that may still forward the packet.
    pub hop_limit: u8,
}

impl Header {
    /// Source and destination.
    #[inline]
    #[must_use]
    pub const fn addresses(&self) -> Addresses {
        Addresses::V6 {
            source: self.source,
            destination: self.destination,
        }
    }

    /// Writes the header of a packet with `payload_bytes` to the front of `buffer`; returns the
    /// header's length. The upper 12 bits of the flow label are lost.
    #[inline]
    pub fn emit(&self, payload_bytes: usize, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let length = length_field(payload_bytes)?;
        let bytes = room_for::<HEADER_BYTES>(buffer)?;
        let class = u32::from(self.traffic_class.0) << 20;
        let first = 6 << 28 | class | self.flow_label & 0xf_ffff;
        put(bytes, 0, first.to_be_bytes());
        put(bytes, 4, length.to_be_bytes());
        put(bytes, NEXT_HEADER_AT, [self.protocol.0, self.hop_limit]);
        put(bytes, 8, self.source.octets());
        put(bytes, 24, self.destination.octets());
        Ok(HEADER_BYTES)
    }
}

/// A packet or a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The header. Its protocol is that of `payload`.
    pub header: Header,
    /// Place of the fragment; `None` for an unfragmented packet.
    pub fragment: Option<Fragment>,
    /// Whether there was a fragment header; also true for atomic fragments (RFC 6946).
    pub fragment_header: bool,
    /// The bytes behind the extension headers, or behind the fragment header of a fragment.
    pub payload: &'a [u8],
    /// Headers and payload, without padding of the frame.
    pub bytes: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads a packet. Bytes behind its payload length are the frame's padding.
    ///
    /// The first fragment of a packet must hold all headers (RFC 7112). The protocol of a fragment
    /// may be that of an extension header.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (header, bytes) = split(bytes)?;
        let chain = Chain::of_packet(bytes).map_err(|refusal| refusal.reason)?;
        Ok(Self {
            header: Header {
                protocol: chain.protocol,
                ..header
            },
            fragment: chain.fragment,
            fragment_header: chain.fragment_header,
            payload: &bytes[chain.payload_at..],
            bytes,
        })
    }
}

/// The fixed header, with the first next header as protocol, and the packet without padding.
#[inline]
fn split(bytes: &[u8]) -> Result<(Header, &[u8]), Malformed> {
    let fixed = bytes
        .first_chunk::<HEADER_BYTES>()
        .ok_or(Malformed::Ipv6Truncated)?;
    if fixed[0] >> 4 != 6 {
        return Err(Malformed::IpVersion);
    }
    let total = HEADER_BYTES + usize::from(get_u16(fixed, 4));
    let bytes = bytes.get(..total).ok_or(Malformed::Ipv6Truncated)?;
    let header = fields(fixed);
    if header.source.is_multicast() {
        return Err(Malformed::Ipv6Source);
    }
    if header.destination.is_unspecified() {
        return Err(Malformed::Ipv6Destination);
    }
    Ok((header, bytes))
}

#[inline]
fn fields(fixed: &[u8; HEADER_BYTES]) -> Header {
    Header {
        source: get_ipv6(fixed, 8),
        destination: get_ipv6(fixed, 24),
        protocol: Protocol(fixed[NEXT_HEADER_AT]),
        traffic_class: TrafficClass(fixed[0] << 4 | fixed[1] >> 4),
        flow_label: get_u32(fixed, 0) & 0xf_ffff,
        hop_limit: fixed[7],
    }
}

/// The contents of an ICMPv6 Parameter Problem message (RFC 4443 §3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterProblem {
    /// Code of the message.
    pub code: u8,
    /// Offset of the fault in the packet, in bytes.
    pub pointer: u32,
}

/// Protocols that every host knows: a payload that it cannot read is dropped silently. If an answer
/// named TCP as unknown, the sender of a damaged SYN would give its connection up.
const HAS_NO_ANSWER: [Protocol; 4] = [
    Protocol::TCP,
    Protocol::UDP,
    Protocol::ICMP6,
    Protocol::NO_NEXT,
];

/// The Parameter Problem message for a packet that [`Packet::parse`] refused, or whose protocol the
/// host does not know. `None`: the host drops the packet silently.
///
/// The caller checks the source address and the rate limit (RFC 4443 §2.4 e and f).
#[must_use]
pub fn parameter_problem(packet: &[u8]) -> Option<ParameterProblem> {
    let (header, bytes) = split(packet).ok()?;
    let (problem, answers_multicast) = match Chain::of_packet(bytes) {
        Ok(chain) if chain.fragment.is_some() || HAS_NO_ANSWER.contains(&chain.protocol) => {
            return None;
        }
        Ok(chain) => (chain.unknown_protocol(), false),
        Err(refusal) => (refusal.problem?, refusal.answers_multicast),
    };
    (answers_multicast || !header.destination.is_multicast()).then_some(problem)
}

/// The header of a packet that an ICMP message quotes, and as many bytes of the payload as the
/// message holds. No payload if the quote ends in the extension headers, or if the packet is a
/// fragment other than the first.
pub(crate) fn quoted(bytes: &[u8]) -> Option<(Header, &[u8])> {
    let header = fields(bytes.first_chunk().filter(|fixed| fixed[0] >> 4 == 6)?);
    let found = Chain::of_packet(bytes)
        .ok()
        .filter(|chain| chain.fragment.is_none_or(|fragment| fragment.offset == 0));
    let Some(chain) = found else {
        return Some((header, &[]));
    };
    let protocol = chain.protocol;
    Some((Header { protocol, ..header }, &bytes[chain.payload_at..]))
}
