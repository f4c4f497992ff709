//! A segment that the caller must send.

use saiga_wire::SeqNum;
use saiga_wire::ip::Ports;
use saiga_wire::tcp::{Flags, Header, Options};

/// The caller sets the ports.
pub(crate) const NO_PORTS: Ports = Ports {
    source: 0,
    destination: 0,
};

/// A segment: its header without ports, and which bytes of the send buffer it carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit {
    /// The header. The caller sets the ports.
    pub header: Header,
    /// Distance of the payload from the front of the send buffer, whose first byte is the first one
    /// that is not acknowledged.
    pub offset: u32,
    /// Bytes of the payload. If more than `mss`, the device must cut it into segments of `mss`
    /// bytes (TSO).
    pub length: u32,
    /// Bytes of a full segment.
    pub mss: u16,
    /// Whether the IP header says that the connection reacts to marks (ECT(0), RFC 3168 §5): only
    /// for data that is sent for the first time (§6.1.4 to §6.1.6).
    pub is_ecn_capable: bool,
}

/// The answer to a segment for which there is no connection (RFC 9293 §3.10.7.1); `None` for a
/// reset. `length` counts the payload.
#[must_use]
pub fn reset_for(header: &Header, length: u32) -> Option<Header> {
    if header.flags.contains(Flags::RST) {
        return None;
    }
    let one = |flag| u32::from(header.flags.contains(flag));
    let end = header.seq + length + one(Flags::SYN) + one(Flags::FIN);
    let (seq, ack) = match header.ack {
        Some(ack) => (ack, None),
        None => (SeqNum(0), Some(end)),
    };
    Some(reset(seq, ack))
}

/// A reset without ports.
pub(crate) fn reset(seq: SeqNum, ack: Option<SeqNum>) -> Header {
    Header {
        ports: NO_PORTS,
        seq,
        ack,
        flags: Flags::RST,
        window: 0,
        urgent: None,
        options: Options::NONE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9293 §3.10.7.1: the reset has numbers that the sender of the segment accepts.
    #[test]
    fn a_segment_without_a_connection_is_reset() {
        let segment = |flags, ack: Option<u32>| Header {
            seq: SeqNum(u32::MAX),
            ack: ack.map(SeqNum),
            flags,
            ..reset(SeqNum(0), None)
        };
        for (name, header, length, expected) in [
            ("SYN", segment(Flags::SYN, None), 0, Some((0, Some(0)))),
            ("data", segment(Flags::NONE, None), 10, Some((0, Some(9)))),
            (
                "FIN and data",
                segment(Flags::FIN, None),
                10,
                Some((0, Some(10))),
            ),
            (
                "acknowledgement",
                segment(Flags::NONE, Some(7)),
                10,
                Some((7, None)),
            ),
            ("reset", segment(Flags::RST, Some(7)), 0, None),
        ] {
            let expected = expected.map(|(seq, ack)| reset(SeqNum(seq), ack.map(SeqNum)));
            assert_eq!(reset_for(&header, length), expected, "{name}");
        }
    }
}
