//! What a port is asked to do with a sent frame: a virtio header in the terms of DPDK.
//!
//! Source: rte_mbuf.h (`RTE_MBUF_F_TX_*`). The lengths of all headers must be told. What a port
//! does not do is done here: the checksum is formed in the frame.

use saiga_wire::offload::{Fill, complete};
use saiga_wire::virtio::{ChecksumPlace, Header, Segmentation, Version};

use super::raw::FrameRequest;
use crate::device::Offload;

/// Bytes of the addresses in front of the tags and the type of a frame.
const ADDRESSES_BYTES: usize = 12;
/// EtherTypes.
const TAGS: [u16; 2] = [0x8100, 0x88a8];
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// The checksum fields of TCP and UDP, as distances from their headers.
const TCP_FIELD: u16 = 16;
const UDP_FIELD: u16 = 6;

/// The request for a frame on a port that does what `can` says; `None` if the frame cannot be sent.
pub(super) fn request(frame: &mut [u8], header: &Header, can: &Offload) -> Option<FrameRequest> {
    let Header {
        checksum,
        verified: _,
        segmentation,
    } = *header;
    match (checksum, segmentation) {
        (None, None) => Some(FrameRequest::default()),
        (None, Some(_)) => None,
        (Some(place), None) => one(frame, place, can),
        (Some(place), Some(segmentation)) => {
            can.segmentation?;
            divided(frame, place, segmentation)
        }
    }
}

/// A frame whose checksum is open.
fn one(frame: &mut [u8], place: ChecksumPlace, can: &Offload) -> Option<FrameRequest> {
    let by_port = request_for(frame, place).filter(|_| can.checksum != Fill::Checksum);
    if by_port.is_none() {
        complete(frame, place.start.into(), place.offset.into()).ok()?;
    }
    Some(by_port.unwrap_or_default())
}

fn divided(frame: &[u8], place: ChecksumPlace, by: Segmentation) -> Option<FrameRequest> {
    let request = request_for(frame, place)?;
    let is_v6 = request.bits & FrameRequest::IS_V6 != 0;
    if place.offset != TCP_FIELD || is_v6 != (by.version == Version::V6) {
        return None;
    }
    Some(FrameRequest {
        bits: request.bits | FrameRequest::SEGMENT,
        transport_bytes: by.headers_bytes.checked_sub(place.start)?,
        segment_bytes: by.segment_bytes,
        ..request
    })
}

/// The request to form a checksum; `None` unless it is that of TCP or UDP in IP.
fn request_for(frame: &[u8], place: ChecksumPlace) -> Option<FrameRequest> {
    let (link_bytes, ether_type) = link(frame)?;
    let version = match ether_type {
        IPV4 => 0,
        IPV6 => FrameRequest::IS_V6,
        _ => return None,
    };
    let protocol = match place.offset {
        TCP_FIELD => 0,
        UDP_FIELD => FrameRequest::IS_UDP,
        _ => return None,
    };
    Some(FrameRequest {
        bits: FrameRequest::FORM_CHECKSUM | version | protocol,
        link_bytes,
        network_bytes: place.start.checked_sub(link_bytes)?,
        ..FrameRequest::default()
    })
}

/// Bytes of the link layer, and the EtherType behind its tags.
fn link(frame: &[u8]) -> Option<(u16, u16)> {
    let mut at = ADDRESSES_BYTES;
    loop {
        let ether_type = u16::from_be_bytes(*frame.get(at..)?.first_chunk()?);
        if !TAGS.contains(&ether_type) {
            return Some((u16::try_from(at + 2).ok()?, ether_type));
        }
        at += 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device;

    const ALL: Offload = Offload {
        checksum: Fill::PseudoHeader,
        segmentation: Some(device::Segmentation {
            checksum: Fill::PseudoHeaderWithoutLength,
            most_bytes: 65_000,
        }),
    };

    /// A frame of zeros with these bytes behind the addresses.
    fn frame(types: &[u8]) -> Vec<u8> {
        [&[0; 12][..], types, &[0; 80]].concat()
    }

    fn open(start: u16, offset: u16) -> Header {
        Header {
            checksum: Some(ChecksumPlace { start, offset }),
            ..Header::NONE
        }
    }

    #[test]
    fn a_port_is_told_the_lengths_of_headers() {
        for (name, types, header, bits, lengths) in [
            ("no request", &[8, 0][..], Header::NONE, 0, [0, 0]),
            ("TCP in IPv4", &[8, 0], open(34, 16), 1, [14, 20]),
            ("UDP in IPv6", &[0x86, 0xdd], open(54, 6), 7, [14, 40]),
            ("a tag", &[0x81, 0, 0, 7, 8, 0], open(38, 16), 1, [18, 20]),
            (
                "two tags",
                &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 7, 8, 0],
                open(42, 16),
                1,
                [22, 20],
            ),
        ] {
            let found = request(&mut frame(types), &header, &ALL).unwrap();
            assert_eq!(found.bits, bits, "{name}");
            let found = [found.link_bytes, found.network_bytes];
            assert_eq!(found, lengths, "{name}");
        }
    }

    #[test]
    fn a_super_segment_is_divided_by_a_port_that_can() {
        let header = Header {
            segmentation: Some(Segmentation {
                version: Version::V4,
                ecn: false,
                headers_bytes: 66,
                segment_bytes: 1_448,
            }),
            ..open(34, 16)
        };
        let found = request(&mut frame(&[8, 0]), &header, &ALL).unwrap();
        let expected = FrameRequest {
            bits: 9,
            link_bytes: 14,
            network_bytes: 20,
            transport_bytes: 32,
            segment_bytes: 1_448,
        };
        assert_eq!(found, expected);
        let mut other = frame(&[0x86, 0xdd]);
        assert_eq!(request(&mut other, &header, &ALL), None, "another version");
        let mut same = frame(&[8, 0]);
        assert_eq!(request(&mut same, &header, &Offload::NONE), None);
    }

    /// The sum of the bytes from 34 on is that of the field alone.
    #[test]
    fn what_a_port_does_not_do_is_done_in_the_frame() {
        for (name, types, offset, can) in [
            ("no ability", [8, 0], 16, Offload::NONE),
            ("another protocol", [8, 0], 2, ALL),
            ("not IP", [8, 6], 16, ALL),
        ] {
            let mut bytes = frame(&types);
            bytes[34 + usize::from(offset)] = 0x12;
            let found = request(&mut bytes, &open(34, offset), &can);
            assert_eq!(found, Some(FrameRequest::default()), "{name}");
            let at = 34 + usize::from(offset);
            assert_eq!(bytes[at..at + 2], [0xed, 0xff], "{name}");
        }
        assert_eq!(
            request(&mut frame(&[8, 0]), &open(94, 16), &Offload::NONE),
            None
        );
    }
}
