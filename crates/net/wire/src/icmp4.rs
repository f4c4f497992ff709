//! ICMP for IPv4.
//!
//! Spec: RFC 792, RFC 1122 §3.2.2, RFC 1191 §4 (the MTU in "fragmentation needed"). Redirects and
//! other messages that a host may ignore are [`Message::Other`]. Extensions behind the quoted
//! packet (RFC 4884) are part of the quote.

use crate::Malformed;
use crate::checksum::Sum;
use crate::emit::EmitError;
use crate::icmp::{Echo, HEADER_BYTES, Layout, Other, PREFIX_BYTES};
use crate::quote::Quoted;

#[cfg(test)]
mod tests;

const ECHO_REPLY: u8 = 0;
const UNREACHABLE: u8 = 3;
const ECHO_REQUEST: u8 = 8;
const TIME_EXCEEDED: u8 = 11;
const PARAMETER_PROBLEM: u8 = 12;

/// Code of "destination unreachable": the host has no such protocol.
pub const PROTOCOL_UNREACHABLE: u8 = 2;
/// Code of "destination unreachable": no process receives at the port.
pub const PORT_UNREACHABLE: u8 = 3;
/// Code of "destination unreachable": the packet exceeds an MTU and must not be divided.
pub const FRAGMENTATION_NEEDED: u8 = 4;
/// Code of "destination unreachable": administratively prohibited (RFC 1812 §5.2.7.1).
pub const PROHIBITED: u8 = 13;
/// Code of "time exceeded": fragments of the packet were missing for too long.
pub const REASSEMBLY_TIME_EXCEEDED: u8 = 1;

/// Bytes of a packet that an error quotes: the error has at most 576 bytes (RFC 1812 §4.3.2.3).
pub const MAX_QUOTE_BYTES: usize = 576 - crate::ipv4::HEADER_BYTES - HEADER_BYTES;

/// An ICMP message. `quote` holds the first bytes of the packet that caused an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// Asks for a reply with the same contents.
    EchoRequest(Echo<'a>),
    /// Answers a request.
    EchoReply(Echo<'a>),
    /// The packet did not reach its destination.
    Unreachable {
        /// Reason; never [`FRAGMENTATION_NEEDED`].
        code: u8,
        /// First bytes of the packet.
        quote: &'a [u8],
    },
    /// The packet exceeds the MTU of a link and must not be divided.
    FragmentationNeeded {
        /// MTU of the link; 0 from routers that do not know RFC 1191.
        mtu: u16,
        /// First bytes of the packet.
        quote: &'a [u8],
    },
    /// The packet's TTL reached 0, or fragments were missing for too long.
    TimeExceeded {
        /// 0 for the TTL, or [`REASSEMBLY_TIME_EXCEEDED`].
        code: u8,
        /// First bytes of the packet.
        quote: &'a [u8],
    },
    /// A field of the packet has an impossible value.
    ParameterProblem {
        /// Offset of the field, if the code is 0.
        pointer: u8,
        /// Kind of the problem.
        code: u8,
        /// First bytes of the packet.
        quote: &'a [u8],
    },
    /// Any other message.
    Other(Other<'a>),
}

impl<'a> Message<'a> {
    /// Reads a message. The checksum is always verified, because devices do not verify it.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (&[kind, code, _, _], body) = bytes
            .split_first_chunk::<PREFIX_BYTES>()
            .ok_or(Malformed::IcmpTruncated)?;
        if !Sum::of(bytes).is_valid() {
            return Err(Malformed::IcmpChecksum);
        }
        let other = Self::Other(Other { kind, code, body });
        let known = matches!(
            (kind, code),
            (ECHO_REQUEST | ECHO_REPLY, 0) | (UNREACHABLE | TIME_EXCEEDED | PARAMETER_PROBLEM, _)
        );
        if !known {
            return Ok(other);
        }
        let (&word, quote) = body
            .split_first_chunk::<4>()
            .ok_or(Malformed::IcmpTruncated)?;
        let [pointer, _, mtu @ ..] = word;
        let mtu = u16::from_be_bytes(mtu);
        Ok(match (kind, code) {
            (ECHO_REQUEST, _) => Self::EchoRequest(Echo::of(word, quote)),
            (ECHO_REPLY, _) => Self::EchoReply(Echo::of(word, quote)),
            (UNREACHABLE, FRAGMENTATION_NEEDED) => Self::FragmentationNeeded { mtu, quote },
            (UNREACHABLE, _) => Self::Unreachable { code, quote },
            (TIME_EXCEEDED, _) => Self::TimeExceeded { code, quote },
            _ => Self::ParameterProblem {
                pointer,
                code,
                quote,
            },
        })
    }

    /// The packet that caused an error, as far as the quote goes.
    #[must_use]
    pub fn quoted(&self) -> Option<Quoted> {
        match self {
            Self::Unreachable { quote, .. }
            | Self::FragmentationNeeded { quote, .. }
            | Self::TimeExceeded { quote, .. }
            | Self::ParameterProblem { quote, .. } => Quoted::of_ipv4(quote),
            Self::EchoRequest(_) | Self::EchoReply(_) | Self::Other(_) => None,
        }
    }

    /// Length of the message.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.layout().len_bytes()
    }

    /// Writes the message with its checksum to the front of `buffer`; returns its length.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError> {
        self.layout().emit(Sum::ZERO, buffer)
    }

    fn layout(&self) -> Layout<'a> {
        match *self {
            Self::EchoRequest(echo) => echo.layout(ECHO_REQUEST),
            Self::EchoReply(echo) => echo.layout(ECHO_REPLY),
            Self::Unreachable { code, quote } => {
                Layout::new(UNREACHABLE, code, quote).field([0; 4])
            }
            Self::FragmentationNeeded { mtu, quote } => {
                Layout::new(UNREACHABLE, FRAGMENTATION_NEEDED, quote)
                    .field([0; 2])
                    .field(mtu.to_be_bytes())
            }
            Self::TimeExceeded { code, quote } => {
                Layout::new(TIME_EXCEEDED, code, quote).field([0; 4])
            }
            Self::ParameterProblem {
                pointer,
                code,
                quote,
            } => Layout::new(PARAMETER_PROBLEM, code, quote).field([pointer, 0, 0, 0]),
            Self::Other(Other { kind, code, body }) => Layout::new(kind, code, body),
        }
    }
}

/// The first bytes of `packet`, as many as an error quotes.
#[must_use]
pub fn quotable(packet: &[u8]) -> &[u8] {
    &packet[..packet.len().min(MAX_QUOTE_BYTES)]
}
