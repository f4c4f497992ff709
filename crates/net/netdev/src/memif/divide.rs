//! Division of super-segments for a peer that takes none (TSO in software).
//!
//! Spec: RFC 9293 §3.1, RFC 791 §3.1, RFC 8200 §3, RFC 3168 §6.1.2 (CWR on the first segment
//! alone). In goes a frame with its virtio header, out come whole segments with their checksums,
//! one by one.

use saiga_wire::checksum::Sum;
use saiga_wire::ethernet;
use saiga_wire::virtio::{Header, Version};

/// Bits of the byte with the flags of TCP.
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;
const TCP: u16 = 6;

/// A super-segment of TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Division {
    version: Version,
    network_at: usize,
    transport_at: usize,
    payload_at: usize,
    segment_bytes: usize,
    frame_bytes: usize,
}

impl Division {
    /// `None` if the header does not describe a segment of TCP in this frame.
    pub(super) fn of(frame: &[u8], header: &Header) -> Option<Self> {
        let segmentation = header.segmentation?;
        let transport_at = usize::from(header.checksum?.start);
        let (_, packet) = ethernet::Header::parse(frame).ok()?;
        let network_at = frame.len() - packet.len();
        let version = match packet.first()? >> 4 {
            4 => Version::V4,
            6 => Version::V6,
            _ => return None,
        };
        let network_bytes = match version {
            Version::V4 => 20,
            Version::V6 => 40,
        };
        let header_bytes = usize::from(frame.get(transport_at + 12)? >> 4) * 4;
        let payload_at = transport_at + header_bytes;
        let is_valid = version == segmentation.version
            && segmentation.segment_bytes > 0
            && transport_at >= network_at + network_bytes
            && header_bytes >= 20
            && payload_at < frame.len();
        is_valid.then_some(Self {
            version,
            network_at,
            transport_at,
            payload_at,
            segment_bytes: segmentation.segment_bytes.into(),
            frame_bytes: frame.len(),
        })
    }

    /// The number of segments.
    pub(super) const fn count(&self) -> usize {
        (self.frame_bytes - self.payload_at).div_ceil(self.segment_bytes)
    }

    /// Writes a segment of the frame to `to`, in place of what is there.
    pub(super) fn segment(&self, frame: &[u8], number: usize, to: &mut Vec<u8>) {
        let from = self.payload_at + number * self.segment_bytes;
        let end = self.frame_bytes.min(from + self.segment_bytes);
        to.clear();
        to.extend_from_slice(&frame[..self.payload_at]);
        to.extend_from_slice(&frame[from..end]);
        self.fill_network(number, to);
        self.fill_transport(number, from - self.payload_at, to);
    }

    /// Length and identification, with the checksum of IPv4.
    fn fill_network(&self, number: usize, to: &mut [u8]) {
        let bytes = to.len() - self.network_at;
        let header = &mut to[self.network_at..self.transport_at];
        match self.version {
            Version::V4 => {
                put(header, 2, short(bytes));
                let id = u16::from_be_bytes([header[4], header[5]]);
                put(header, 4, id.wrapping_add(short(number)));
                put(header, 10, 0);
                put(header, 10, Sum::of(header).checksum());
            }
            Version::V6 => put(header, 4, short(bytes - 40)),
        }
    }

    /// Sequence number and flags, and the checksum.
    fn fill_transport(&self, number: usize, sent_bytes: usize, to: &mut [u8]) {
        let (network, segment) = to.split_at_mut(self.transport_at);
        let addresses = match self.version {
            Version::V4 => &network[self.network_at + 12..self.network_at + 20],
            Version::V6 => &network[self.network_at + 8..self.network_at + 40],
        };
        let sequence = [segment[4], segment[5], segment[6], segment[7]];
        let sent_bytes = u32::try_from(sent_bytes).unwrap_or(0);
        let sequence = u32::from_be_bytes(sequence).wrapping_add(sent_bytes);
        segment[4..8].copy_from_slice(&sequence.to_be_bytes());
        if number > 0 {
            segment[13] &= !CWR;
        }
        if number + 1 < self.count() {
            segment[13] &= !(FIN | PSH);
        }
        put(segment, 16, 0);
        let pseudo = Sum::of(addresses).u16(TCP).u16(short(segment.len()));
        put(segment, 16, pseudo.bytes(segment).checksum());
    }
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// A length or number within a frame of at most 64 KiB.
fn short(value: usize) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}
