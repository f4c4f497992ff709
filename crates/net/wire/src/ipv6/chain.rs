//! The chain of extension headers: one walk from the IPv6 header to the payload.
//!
//! Spec: RFC 8200 §4; RFC 5095 (routing type 0), RFC 6946 (atomic fragments), RFC 7112 (the first
//! fragment holds all headers).

#[cfg(test)]
mod tests;

use super::{HEADER_BYTES, MAX_EXTENSION_BYTES, MAX_EXTENSIONS, NEXT_HEADER_AT, ParameterProblem};
use crate::Malformed;
use crate::bytes::{get_u16, get_u32};
use crate::ip::{Fragment, Protocol, is_possible};

/// Codes of Parameter Problem messages (RFC 4443 §3.4, RFC 7112 §6).
const ERRONEOUS_FIELD: u8 = 0;
const UNRECOGNIZED_NEXT_HEADER: u8 = 1;
const UNRECOGNIZED_OPTION: u8 = 2;
const INCOMPLETE_FIRST_FRAGMENT: u8 = 3;
/// Offset of the payload length field.
const PAYLOAD_LENGTH_AT: usize = 4;
const FRAGMENT_BYTES: usize = 8;

/// Why a walk ended early.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) reason: Malformed,
    /// The message that tells the sender.
    pub(super) problem: Option<ParameterProblem>,
    /// Whether the message also answers a multicast packet (RFC 4443 §2.4 e.3).
    pub(super) answers_multicast: bool,
}

impl Refusal {
    const fn silent(reason: Malformed) -> Self {
        Self {
            reason,
            problem: None,
            answers_multicast: false,
        }
    }

    fn answered(reason: Malformed, code: u8, pointer: usize) -> Self {
        Self {
            problem: Some(problem(code, pointer)),
            ..Self::silent(reason)
        }
    }
}

fn problem(code: u8, pointer: usize) -> ParameterProblem {
    ParameterProblem {
        code,
        pointer: u32::try_from(pointer).unwrap_or(u32::MAX),
    }
}

/// State of a walk, and its result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chain {
    /// Protocol of the next bytes.
    pub(super) protocol: Protocol,
    /// Offset of the next bytes: at the end of the walk, of the payload.
    pub(super) payload_at: usize,
    /// Place of the fragment, if the packet is a fragment.
    pub(super) fragment: Option<Fragment>,
    pub(super) fragment_header: bool,
    /// Offset of the next header field that holds `protocol`.
    named_at: usize,
    /// Number of extension headers so far.
    passed: usize,
}

impl Chain {
    /// Walks through a packet of at least [`HEADER_BYTES`].
    #[inline]
    pub(super) fn of_packet(packet: &[u8]) -> Result<Self, Refusal> {
        let mut chain = Self {
            protocol: Protocol(packet[NEXT_HEADER_AT]),
            payload_at: HEADER_BYTES,
            fragment: None,
            fragment_header: false,
            named_at: NEXT_HEADER_AT,
            passed: 0,
        };
        if chain.protocol != Protocol::TCP {
            chain.walk(packet)?;
        }
        if chain.fragment.is_some_and(|fragment| fragment.offset == 0) {
            chain.check_first_fragment(packet)?;
        }
        Ok(chain)
    }

    /// The message for a payload whose protocol the host does not know.
    pub(super) fn unknown_protocol(&self) -> ParameterProblem {
        problem(UNRECOGNIZED_NEXT_HEADER, self.named_at)
    }

    /// Walks to the payload of the packet or fragment.
    fn walk(&mut self, packet: &[u8]) -> Result<(), Refusal> {
        loop {
            match self.protocol {
                Protocol::HOP_BY_HOP if self.named_at == NEXT_HEADER_AT => self.options(packet)?,
                Protocol::HOP_BY_HOP => {
                    let (code, pointer) = (UNRECOGNIZED_NEXT_HEADER, self.named_at);
                    return Err(Refusal::answered(Malformed::Ipv6HopByHop, code, pointer));
                }
                Protocol::DESTINATION_OPTIONS => self.options(packet)?,
                Protocol::ROUTING => self.routing(packet)?,
                Protocol::FRAGMENT => self.fragment(packet)?,
                _ => return Ok(()),
            }
            if self.fragment.is_some() {
                return Ok(());
            }
        }
    }

    /// Checks that a first fragment also holds all headers behind its fragment header (RFC 7112).
    fn check_first_fragment(&self, packet: &[u8]) -> Result<(), Refusal> {
        let incomplete = || {
            let reason = Malformed::Ipv6FragmentHeaders;
            Refusal::answered(reason, INCOMPLETE_FIRST_FRAGMENT, 0)
        };
        let mut rest = Self {
            fragment: None,
            ..*self
        };
        rest.walk(packet).map_err(|refusal| {
            let truncated = refusal.reason == Malformed::Ipv6ExtensionTruncated;
            if truncated { incomplete() } else { refusal }
        })?;
        let upper_bytes = match rest.protocol {
            Protocol::TCP => 20,
            Protocol::UDP | Protocol::ICMP6 => 8,
            _ => 0,
        };
        if packet.len() - rest.payload_at < upper_bytes {
            return Err(incomplete());
        }
        Ok(())
    }

    /// The extension header at `payload_at`; its second byte is its length.
    fn extension<'a>(&self, packet: &'a [u8]) -> Result<&'a [u8], Refusal> {
        let rest = &packet[self.payload_at..];
        let length = rest
            .get(1)
            .map_or(usize::MAX, |units| (usize::from(*units) + 1) * 8);
        rest.get(..length)
            .ok_or(Refusal::silent(Malformed::Ipv6ExtensionTruncated))
    }

    /// Advances over an extension header; returns its offset.
    fn pass(&mut self, header: &[u8]) -> Result<usize, Refusal> {
        let at = self.payload_at;
        self.protocol = Protocol(header[0]);
        self.named_at = at;
        self.payload_at += header.len();
        self.passed += 1;
        let bytes = self.payload_at - HEADER_BYTES;
        if self.passed > MAX_EXTENSIONS || bytes > MAX_EXTENSION_BYTES {
            return Err(Refusal::silent(Malformed::Ipv6ExtensionLimit));
        }
        Ok(at)
    }

    fn options(&mut self, packet: &[u8]) -> Result<(), Refusal> {
        const PAD_1: u8 = 0;
        const PAD_N: u8 = 1;
        let header = self.extension(packet)?;
        let mut at = self.pass(header)? + 2;
        let mut options = &header[2..];
        while let Some((&kind, rest)) = options.split_first() {
            let length = match (kind, rest.first()) {
                (PAD_1, _) => 1,
                (_, Some(&data)) => 2 + usize::from(data),
                (_, None) => usize::MAX,
            };
            let behind = options
                .get(length..)
                .ok_or(Refusal::silent(Malformed::Ipv6Option))?;
            if !matches!(kind, PAD_1 | PAD_N) {
                unknown_option(kind, at)?;
            }
            (options, at) = (behind, at + length);
        }
        Ok(())
    }

    /// Ignores a routing header without segments left (RFC 8200 §4.4).
    fn routing(&mut self, packet: &[u8]) -> Result<(), Refusal> {
        let header = self.extension(packet)?;
        let at = self.pass(header)?;
        let (kind, segments_left) = (header[2], header[3]);
        if segments_left == 0 {
            return Ok(());
        }
        let reason = if kind == 0 {
            Malformed::Ipv6RoutingType0
        } else {
            Malformed::Ipv6Routing
        };
        Err(Refusal::answered(reason, ERRONEOUS_FIELD, at + 2))
    }

    fn fragment(&mut self, packet: &[u8]) -> Result<(), Refusal> {
        if self.fragment_header {
            return Err(Refusal::silent(Malformed::Ipv6FragmentTwice));
        }
        let header = packet[self.payload_at..]
            .first_chunk::<FRAGMENT_BYTES>()
            .ok_or(Refusal::silent(Malformed::Ipv6ExtensionTruncated))?;
        let at = self.pass(header)?;
        self.fragment_header = true;
        let place = get_u16(header, 2);
        let fragment = Fragment {
            id: get_u32(header, 4),
            offset: place & !7,
            more: place & 1 != 0,
        };
        if fragment.offset == 0 && !fragment.more {
            return Ok(()); // An atomic fragment is processed as a packet (RFC 6946 §4).
        }
        let length = packet.len() - self.payload_at;
        if !is_possible(fragment, at - HEADER_BYTES, length) {
            let odd_length = fragment.more && !length.is_multiple_of(8);
            let pointer = if odd_length {
                PAYLOAD_LENGTH_AT
            } else {
                at + 2
            };
            let reason = Malformed::Ipv6Fragment;
            return Err(Refusal::answered(reason, ERRONEOUS_FIELD, pointer));
        }
        self.fragment = Some(fragment);
        Ok(())
    }
}

/// Treats an option that the host does not know as the upper two bits of its type demand.
fn unknown_option(kind: u8, at: usize) -> Result<(), Refusal> {
    let reason = Malformed::Ipv6UnknownOption;
    match kind >> 6 {
        0 => Ok(()),
        1 => Err(Refusal::silent(reason)),
        action => Err(Refusal {
            answers_multicast: action == 2,
            ..Refusal::answered(reason, UNRECOGNIZED_OPTION, at)
        }),
    }
}
