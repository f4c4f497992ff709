//! Blocks of pcapng files.
//!
//! Source: draft-ietf-opsawg-pcapng §3 (blocks, options), §4.1 (section), §4.2 (interface), §4.3
//! (enhanced packet). Integers are little-endian on every machine, and timestamps count
//! nanoseconds. All blocks and options are padded to 4 bytes.

use std::time::Duration;

use crate::device::{Frame, Link};
use crate::stored::close_checksum;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// Tells a reader the byte order.
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Format 1.0: major in the lower half.
const VERSION: u32 = 1;
const LINKTYPE_ETHERNET: u32 = 1;
const LINKTYPE_RAW: u32 = 101;

const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
const SECTION_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const INTERFACE_DESCRIPTION: u16 = 3;
const INTERFACE_RESOLUTION: u16 = 9;
const INTERFACE_FILTER: u16 = 11;
const PACKET_FLAGS: u16 = 2;
/// Timestamps in units of 10^-9 seconds.
const NANOSECONDS: u8 = 9;
/// First byte of the filter option: the filter is a text.
const FILTER_TEXT: u8 = 0;

/// Which way a frame went, as the lower bits of `epb_flags`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Received = 1,
    Sent = 2,
}

/// An interface of a section; its number is its place in the section.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interface<'a> {
    pub(super) name: &'a str,
    pub(super) description: &'a str,
    pub(super) link: Link,
    pub(super) snap_bytes: u32,
    /// Text of the filter; empty for none.
    pub(super) filter: &'a str,
}

/// A captured frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packet<'a> {
    /// Number of the interface.
    pub(super) interface: u32,
    /// Time since the Unix epoch.
    pub(super) at: Duration,
    pub(super) direction: Direction,
    pub(super) frame: Frame<'a>,
    pub(super) comment: Option<&'a str>,
    pub(super) snap_bytes: u32,
}

/// Appends the header of a section.
pub(super) fn section(out: &mut Vec<u8>, application: &str) {
    block(out, SECTION, |out| {
        put(out, BYTE_ORDER);
        put(out, VERSION);
        // The length of the section is not known.
        out.extend_from_slice(&[0xff; 8]);
        option(out, SECTION_APPLICATION, &[application.as_bytes()]);
        option(out, END_OF_OPTIONS, &[]);
    });
}

/// Appends an interface.
pub(super) fn interface(out: &mut Vec<u8>, interface: &Interface<'_>) {
    block(out, INTERFACE, |out| {
        put(
            out,
            match interface.link {
                Link::Ethernet => LINKTYPE_ETHERNET,
                Link::Ip => LINKTYPE_RAW,
            },
        );
        put(out, interface.snap_bytes);
        option(out, INTERFACE_NAME, &[interface.name.as_bytes()]);
        option(
            out,
            INTERFACE_DESCRIPTION,
            &[interface.description.as_bytes()],
        );
        option(out, INTERFACE_RESOLUTION, &[&[NANOSECONDS]]);
        if !interface.filter.is_empty() {
            let text = interface.filter.as_bytes();
            option(out, INTERFACE_FILTER, &[&[FILTER_TEXT], text]);
        }
        option(out, END_OF_OPTIONS, &[]);
    });
}

/// Appends a frame. A checksum that the sender left open is formed in the copy.
pub(super) fn packet(out: &mut Vec<u8>, packet: &Packet<'_>) {
    let Frame { bytes, offload } = packet.frame;
    let original = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let captured = original.min(packet.snap_bytes);
    let nanos = u64::try_from(packet.at.as_nanos()).unwrap_or(u64::MAX);
    let nanos = nanos.to_le_bytes();
    block(out, ENHANCED_PACKET, |out| {
        put(out, packet.interface);
        // The upper half comes first.
        out.extend_from_slice(&nanos[4..]);
        out.extend_from_slice(&nanos[..4]);
        put(out, captured);
        put(out, original);
        let begin = out.len();
        out.extend_from_slice(bytes);
        // A checksum covers the bytes behind the snap length, too.
        close_checksum(&mut out[begin..], &offload);
        out.truncate(begin + captured as usize);
        pad(out, begin);
        let flags = packet.direction as u32;
        option(out, PACKET_FLAGS, &[&flags.to_le_bytes()]);
        if let Some(comment) = packet.comment {
            option(out, COMMENT, &[comment.as_bytes()]);
        }
        option(out, END_OF_OPTIONS, &[]);
    });
}

/// Appends a block: type, length, content and the length again.
fn block(out: &mut Vec<u8>, kind: u32, content: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    put(out, kind);
    put(out, 0);
    content(out);
    let length = out.len() + 4 - begin;
    let length = u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes();
    out[begin + 4..begin + 8].copy_from_slice(&length);
    out.extend_from_slice(&length);
}

/// Appends an option, whose value is given in parts. A value of more than 65,535 bytes is left out.
fn option(out: &mut Vec<u8>, code: u16, value: &[&[u8]]) {
    let value = value.concat();
    let Ok(length) = u16::try_from(value.len()) else {
        return;
    };
    out.extend_from_slice(&code.to_le_bytes());
    out.extend_from_slice(&length.to_le_bytes());
    let begin = out.len();
    out.extend_from_slice(&value);
    pad(out, begin);
}

/// Fills up to a multiple of 4 bytes since `begin`.
fn pad(out: &mut Vec<u8>, begin: usize) {
    let length = out.len() - begin;
    out.resize(begin + length.next_multiple_of(4), 0);
}

fn put(out: &mut Vec<u8>, word: u32) {
    out.extend_from_slice(&word.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use saiga_wire::virtio::{ChecksumPlace, Header};

    /// Every byte of each block, by hand from the draft.
    #[test]
    fn blocks_are_laid_out_as_the_draft_says() {
        let mut out = Vec::new();
        section(&mut out, "saiga");
        let expected = [
            &[0x0a, 0x0d, 0x0d, 0x0a, 44, 0, 0, 0][..],
            &[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0],
            &[0xff; 8],
            &[4, 0, 5, 0, b's', b'a', b'i', b'g', b'a', 0, 0, 0],
            &[0, 0, 0, 0, 44, 0, 0, 0],
        ];
        assert_eq!(out, expected.concat());
        out.clear();
        interface(
            &mut out,
            &Interface {
                name: "tap0",
                description: "queue 1",
                link: Link::Ip,
                snap_bytes: 0x0102,
                filter: "arp",
            },
        );
        let expected = [
            &[1, 0, 0, 0, 60, 0, 0, 0, 101, 0, 0, 0, 2, 1, 0, 0][..],
            &[2, 0, 4, 0, b't', b'a', b'p', b'0'],
            &[3, 0, 7, 0, b'q', b'u', b'e', b'u', b'e', b' ', b'1', 0],
            &[9, 0, 1, 0, 9, 0, 0, 0],
            &[11, 0, 4, 0, 0, b'a', b'r', b'p'],
            &[0, 0, 0, 0, 60, 0, 0, 0],
        ];
        assert_eq!(out, expected.concat());
    }

    fn sample(bytes: &[u8]) -> Packet<'_> {
        Packet {
            interface: 1,
            // 0x0102_0304_0506_0708 nanoseconds.
            at: Duration::from_nanos(72_623_859_790_382_856),
            direction: Direction::Sent,
            frame: Frame {
                bytes,
                offload: Header::NONE,
            },
            comment: Some("ok"),
            snap_bytes: 3,
        }
    }

    #[test]
    fn a_frame_is_cut_at_the_snap_length() {
        let mut out = Vec::new();
        packet(&mut out, &sample(b"abcde"));
        let expected = [
            &[6, 0, 0, 0, 56, 0, 0, 0, 1, 0, 0, 0][..],
            &[4, 3, 2, 1, 8, 7, 6, 5],
            &[3, 0, 0, 0, 5, 0, 0, 0, b'a', b'b', b'c', 0],
            &[2, 0, 4, 0, 2, 0, 0, 0],
            &[1, 0, 2, 0, b'o', b'k', 0, 0],
            &[0, 0, 0, 0, 56, 0, 0, 0],
        ];
        assert_eq!(out, expected.concat());
    }

    /// The example of RFC 1071 §3 behind a field that holds the sum of a pseudo header, 1.
    #[test]
    fn an_open_checksum_is_formed_over_the_whole_frame() {
        let open = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        let checksum = Some(ChecksumPlace {
            start: 0,
            offset: 0,
        });
        let mut one = sample(&open);
        one.frame.offload.checksum = checksum;
        let mut out = Vec::new();
        packet(&mut out, &one);
        assert_eq!(out[28..31], [0x22, 0x0d, 0xf2]);
    }
}
