//! ICMP for IPv6.
//!
//! Spec: RFC 4443; neighbour discovery is in [`crate::ndp`]. Multicast listener discovery and other
//! messages are [`Message::Other`].

use crate::Malformed;
use crate::checksum::Sum;
use crate::emit::EmitError;
use crate::icmp::{Echo, HEADER_BYTES, Layout, Other, PREFIX_BYTES};
use crate::ip::{Addresses, Protocol};
use crate::quote::Quoted;
use crate::{ipv6, ndp};

#[cfg(test)]
mod tests;

const UNREACHABLE: u8 = 1;
const PACKET_TOO_BIG: u8 = 2;
const TIME_EXCEEDED: u8 = 3;
const PARAMETER_PROBLEM: u8 = 4;
const ECHO_REQUEST: u8 = 128;
const ECHO_REPLY: u8 = 129;

/// Code of "destination unreachable": administratively prohibited.
pub const PROHIBITED: u8 = 1;
/// Code of "destination unreachable": no process receives at the port.
pub const PORT_UNREACHABLE: u8 = 4;
/// Code of "time exceeded": fragments of the packet were missing for too long.
pub const REASSEMBLY_TIME_EXCEEDED: u8 = 1;

/// Bytes of a packet that an error quotes: the error has at most 1,280 bytes (RFC 4443 §2.4 c).
pub const MAX_QUOTE_BYTES: usize = ipv6::MIN_MTU_BYTES - ipv6::HEADER_BYTES - HEADER_BYTES;

/// An ICMPv6 message. `quote` holds the first bytes of the packet that caused an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// Asks for a reply with the same contents.
    EchoRequest(Echo<'a>),
    /// Answers a request.
    EchoReply(Echo<'a>),
    /// The packet did not reach its destination.
    Unreachable {
        /// Reason.
        code: u8,
        /// First bytes of the packet.
        quote: &'a [u8],
    },
    /// The packet exceeds the MTU of a link.
    PacketTooBig {
        /// MTU of the link.
        mtu: u32,
        /// First bytes of the packet.
        quote: &'a [u8],
    },
    /// The packet's hop limit reached 0, or fragments were missing for too long.
    TimeExceeded {
        /// 0 for the hop limit, or [`REASSEMBLY_TIME_EXCEEDED`].
        code: u8,
        /// First bytes of the packet.
        quote: &'a [u8],
    },
    /// A field of the packet has an impossible or unknown value.
    ParameterProblem {
        /// The field and its fault.
        problem: ipv6::ParameterProblem,
        /// First bytes of the packet.
        quote: &'a [u8],
    },
    /// Neighbour discovery.
    Ndp(ndp::Message<'a>),
    /// Any other message.
    Other(Other<'a>),
}

impl<'a> Message<'a> {
    /// Reads the message of a packet. The checksum is always verified, because devices do not
    /// verify it.
    pub fn parse(packet: &ipv6::Packet<'a>) -> Result<Self, Malformed> {
        let bytes = packet.payload;
        let (&[kind, code, _, _], body) = bytes
            .split_first_chunk::<PREFIX_BYTES>()
            .ok_or(Malformed::Icmp6Truncated)?;
        let addresses = packet.header.addresses();
        if !pseudo_header(&addresses, bytes.len())
            .bytes(bytes)
            .is_valid()
        {
            return Err(Malformed::Icmp6Checksum);
        }
        if ndp::is_ndp(kind) {
            return ndp::Message::parse(packet, kind, code, body).map(Self::Ndp);
        }
        let known = matches!(
            (kind, code),
            (ECHO_REQUEST | ECHO_REPLY, 0) | (UNREACHABLE..=PARAMETER_PROBLEM, _)
        );
        if !known {
            return Ok(Self::Other(Other { kind, code, body }));
        }
        let (&word, quote) = body
            .split_first_chunk::<4>()
            .ok_or(Malformed::Icmp6Truncated)?;
        let value = u32::from_be_bytes(word);
        Ok(match kind {
            ECHO_REQUEST => Self::EchoRequest(Echo::of(word, quote)),
            ECHO_REPLY => Self::EchoReply(Echo::of(word, quote)),
            UNREACHABLE => Self::Unreachable { code, quote },
            PACKET_TOO_BIG => Self::PacketTooBig { mtu: value, quote },
            TIME_EXCEEDED => Self::TimeExceeded { code, quote },
            _ => {
                let pointer = value;
                let problem = ipv6::ParameterProblem { code, pointer };
                Self::ParameterProblem { problem, quote }
            }
        })
    }

    /// The packet that caused an error, as far as the quote goes.
    #[must_use]
    pub fn quoted(&self) -> Option<Quoted> {
        match self {
            Self::Unreachable { quote, .. }
            | Self::PacketTooBig { quote, .. }
            | Self::TimeExceeded { quote, .. }
            | Self::ParameterProblem { quote, .. } => Quoted::of_ipv6(quote),
            Self::EchoRequest(_) | Self::EchoReply(_) | Self::Ndp(_) | Self::Other(_) => None,
        }
    }

    /// Length of the message.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.layout().len_bytes()
    }

    /// Writes the message with its checksum, which covers the addresses of the packet, to the front
    /// of `buffer`; returns its length.
    pub fn emit(&self, addresses: &Addresses, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let layout = self.layout();
        layout.emit(pseudo_header(addresses, layout.len_bytes()), buffer)
    }

    fn layout(&self) -> Layout<'a> {
        match *self {
            Self::EchoRequest(echo) => echo.layout(ECHO_REQUEST),
            Self::EchoReply(echo) => echo.layout(ECHO_REPLY),
            Self::Unreachable { code, quote } => {
                Layout::new(UNREACHABLE, code, quote).field([0; 4])
            }
            Self::PacketTooBig { mtu, quote } => {
                Layout::new(PACKET_TOO_BIG, 0, quote).field(mtu.to_be_bytes())
            }
            Self::TimeExceeded { code, quote } => {
                Layout::new(TIME_EXCEEDED, code, quote).field([0; 4])
            }
            Self::ParameterProblem { problem, quote } => {
                Layout::new(PARAMETER_PROBLEM, problem.code, quote)
                    .field(problem.pointer.to_be_bytes())
            }
            Self::Ndp(message) => message.layout(),
            Self::Other(Other { kind, code, body }) => Layout::new(kind, code, body),
        }
    }
}

/// The pseudo header of a message. A message above 4 GiB does not fit into a packet, whatever its
/// checksum.
fn pseudo_header(addresses: &Addresses, length: usize) -> Sum {
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    addresses.pseudo_header(Protocol::ICMP6, length)
}

/// The first bytes of `packet`, as many as an error quotes.
#[must_use]
pub fn quotable(packet: &[u8]) -> &[u8] {
    &packet[..packet.len().min(MAX_QUOTE_BYTES)]
}
