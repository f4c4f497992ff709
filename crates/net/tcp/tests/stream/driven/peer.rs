//! Segments of the peer: numbers near those that the connection expects.

use saiga_wire::SeqNum;
use saiga_wire::ip::Ports;
use saiga_wire::tcp::{Flags, Header, Options, SackBlock, SackBlocks, Timestamps};

use super::bytes::Bytes;

/// What the peer has learnt from the segments of the connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    /// The number that the connection expects next.
    pub(crate) nxt: SeqNum,
    /// What the peer has acknowledged, and the end of what the connection has sent.
    pub(crate) una: SeqNum,
    pub(crate) end: SeqNum,
    /// The last timestamp of the connection, and the clock of the peer.
    pub(crate) timestamp: u32,
    pub(crate) clock: u32,
}

/// A segment with the length of its payload.
pub(crate) struct Segment {
    pub(crate) header: Header,
    pub(crate) length: u32,
    pub(crate) is_congested: bool,
}

impl Peer {
    pub(crate) fn segment(&self, bytes: &mut Bytes<'_>) -> Segment {
        let (kind, shape) = (bytes.byte(), bytes.byte());
        let flags = match kind & 15 {
            0..=7 => Flags::NONE,
            8 | 9 => Flags::PSH,
            10 | 11 => Flags::FIN,
            12 => Flags::SYN,
            13 => Flags::RST,
            14 => Flags::ECE,
            _ => Flags::CWR | Flags::FIN,
        };
        let length = match shape & 7 {
            0..=2 => 0,
            3 => 1,
            4 => 100,
            5 => 1000,
            6 => 1460,
            _ => bytes.short().into(),
        };
        let window = match shape >> 3 & 3 {
            0 => u16::MAX,
            1 => 8000,
            2 => 0,
            _ => bytes.short(),
        };
        let in_flight = self.end - self.una;
        let ack = match shape >> 5 & 3 {
            0 => self.end,
            1 => self.una,
            _ => self.una + u32::from(bytes.short()) % in_flight.saturating_add(1).max(1),
        } + bytes.near();
        let is_syn = flags.contains(Flags::SYN);
        let options = if is_syn {
            self.options_of_syn(bytes)
        } else {
            self.options(kind, shape, bytes)
        };
        Segment {
            header: Header {
                ports: Ports {
                    source: 0,
                    destination: 0,
                },
                seq: self.nxt + bytes.near(),
                ack: (kind & 16 == 0).then_some(ack),
                flags,
                window,
                urgent: (kind & 128 != 0).then(|| bytes.short()),
                options,
            },
            length: if is_syn { 0 } else { length },
            is_congested: kind & 32 != 0,
        }
    }

    /// Options of the peer's SYN.
    pub(crate) fn options_of_syn(&self, bytes: &mut Bytes<'_>) -> Options {
        let offered = bytes.byte();
        let has = |bit: u8| offered >> bit & 1 == 0;
        Options {
            mss: has(0).then_some([1460, 536, 0, 65_535][usize::from(offered >> 6)]),
            window_scale: has(1).then_some(offered >> 4 & 15),
            sack_permitted: has(2),
            timestamps: has(3).then_some(Timestamps {
                value: self.clock,
                echo: self.timestamp,
            }),
            ..Options::NONE
        }
    }

    fn options(&self, kind: u8, shape: u8, bytes: &mut Bytes<'_>) -> Options {
        let timestamps = (kind & 64 == 0).then(|| Timestamps {
            value: self.clock.wrapping_add(bytes.near()),
            echo: self.timestamp.wrapping_sub(bytes.byte().into()),
        });
        let sack = if shape & 128 == 0 {
            SackBlocks::NONE
        } else {
            let count = bytes.byte() % 4 + 1;
            (0..count).map(|_| self.block(bytes)).collect()
        };
        Options {
            timestamps,
            sack,
            ..Options::NONE
        }
    }

    fn block(&self, bytes: &mut Bytes<'_>) -> SackBlock {
        let left = self.una + u32::from(bytes.short()) + bytes.near();
        SackBlock {
            left,
            right: left + u32::from(bytes.short()),
        }
    }
}
