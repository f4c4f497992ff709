//! Packets, and segments in the numbers of a script.

use saiga_wire::SeqNum;
use saiga_wire::ip::{Ecn, Ports, Protocol, TrafficClass};
use saiga_wire::tcp::{self, Flags, Header, Options, SackBlock, Timestamps};
use saiga_wire::{ipv4, tcp::CHECKSUM_AT};

use crate::device::{LOCAL, PEER};
use crate::parse::Segment;

/// Port of the kernel's side.
pub(crate) const LOCAL_PORT: u16 = 8080;
/// Port of the script's side.
pub(crate) const PEER_PORT: u16 = 9090;
/// Initial number of the peer, near its wrap.
const IRS: SeqNum = SeqNum(u32::MAX - 500);

/// The numbers with which the connection began.
#[derive(Debug)]
pub(crate) struct Numbers {
    /// Initial number of the peer.
    pub(crate) irs: SeqNum,
    iss: Option<SeqNum>,
    /// The timestamp that stands for zero.
    timestamp: Option<u32>,
    /// The timestamp with which the script begins.
    pub(crate) clock: u32,
    /// The peer marks its packets as capable of ECN.
    pub(crate) is_ecn: bool,
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            irs: IRS,
            iss: None,
            timestamp: None,
            clock: 0,
            is_ecn: false,
        }
    }
}

impl Numbers {
    /// The next SYN of the kernel begins another connection.
    pub(crate) fn begin_anew(&mut self) {
        self.iss = None;
    }

    /// Reads a packet of the kernel; `None` if it is not a segment.
    pub(crate) fn read(&mut self, packet: &[u8]) -> Result<Option<Segment>, String> {
        let Ok(ip) = ipv4::Packet::parse(packet) else {
            return Ok(None); // IPv6: routers and neighbours.
        };
        if ip.header.protocol != Protocol::TCP {
            return Ok(None);
        }
        if !tcp::is_intact(&ip.header.addresses(), ip.payload) {
            return Err("the kernel sent a wrong checksum".to_owned());
        }
        let segment = tcp::Segment::parse(ip.payload).map_err(|why| format!("{why:?}"))?;
        let header = &segment.header;
        if self.iss.is_none() && header.flags.contains(Flags::SYN) {
            self.iss = Some(header.seq);
            let first = header.options.timestamps.map(|one| one.value);
            self.timestamp = first.map(|first| first.wrapping_sub(self.clock));
        }
        let ecn = ip.header.traffic_class.ecn();
        Ok(Some(Segment {
            is_ecn_capable: Some(ecn != Ecn::NotCapable),
            ..self.relative(header, segment.payload.len())
        }))
    }

    fn relative(&self, header: &Header, length: usize) -> Segment {
        let iss = self.iss.unwrap_or_default();
        let base = self.timestamp.unwrap_or_default();
        let options = &header.options;
        let block = |block: &SackBlock| [block.left - self.irs, block.right - self.irs];
        Segment {
            flags: header.flags,
            seq: header.seq - iss,
            length: u32::try_from(length).unwrap(),
            ack: header.ack.map(|ack| ack - self.irs),
            window: Some(header.window),
            mss: options.mss,
            scale: options.window_scale,
            has_sack_permitted: options.sack_permitted,
            timestamps: options
                .timestamps
                .map(|one| [one.value.wrapping_sub(base), one.echo]),
            sack: options.sack.as_slice().iter().map(block).collect(),
            urgent: header.urgent,
            ..Segment::default()
        }
    }

    /// A number of the kernel.
    pub(crate) fn absolute_number(&self, number: u32) -> SeqNum {
        self.iss.unwrap_or_default() + number
    }

    /// A packet of the peer.
    pub(crate) fn write(&self, segment: &Segment) -> Vec<u8> {
        let header = self.absolute(segment);
        let ecn = match (segment.is_congested, self.is_ecn && segment.length > 0) {
            (true, _) => Ecn::Congested,
            (false, true) => Ecn::Capable0,
            (false, false) => Ecn::NotCapable,
        };
        let ip = ipv4::Header {
            source: PEER,
            destination: LOCAL,
            protocol: Protocol::TCP,
            traffic_class: TrafficClass(0).with_ecn(ecn),
            ttl: 64,
            id: 0,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
        };
        let length = header.len_bytes() + usize::try_from(segment.length).unwrap();
        let mut packet = vec![0; ipv4::HEADER_BYTES + length];
        let (head, body) = packet.split_at_mut(ipv4::HEADER_BYTES);
        ip.emit(length, head).unwrap();
        header.emit(body).unwrap();
        let sum = tcp::pseudo_header(&ip.addresses(), length).bytes(body);
        body[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&sum.checksum().to_be_bytes());
        packet
    }

    fn absolute(&self, segment: &Segment) -> Header {
        let iss = self.iss.unwrap_or_default();
        let base = self.timestamp.unwrap_or_default();
        let block = |[left, right]: &[u32; 2]| SackBlock {
            left: iss + *left,
            right: iss + *right,
        };
        Header {
            ports: Ports {
                source: PEER_PORT,
                destination: LOCAL_PORT,
            },
            seq: self.irs + segment.seq,
            ack: segment.ack.map(|ack| iss + ack),
            flags: segment.flags,
            window: segment.window.unwrap_or(0),
            urgent: segment.urgent,
            options: Options {
                mss: segment.mss,
                window_scale: segment.scale,
                sack_permitted: segment.has_sack_permitted,
                timestamps: segment.timestamps.map(|[value, echo]| Timestamps {
                    value,
                    echo: base.wrapping_add(echo),
                }),
                sack: segment.sack.iter().map(block).collect(),
                malformed: false,
            },
        }
    }
}
