//! Packets that can be written are equal after writing and reading them again.

use saiga_wire::ethernet;
use saiga_wire::frame::{Content, Frame, Network, Packet, Transport, Writer};
use saiga_wire::offload::{ChecksumState, Fill};
use saiga_wire::tcp::{self, Header, SackBlocks, Segment};

/// Longer than any frame that is written again.
const BUFFER_BYTES: usize = 70_000;

/// Writes a frame of the same contents.
pub(crate) fn frame(parsed: &Frame<'_>) {
    let mut buffer = vec![0; BUFFER_BYTES];
    let Some(length) = write(&parsed.link, &parsed.content, &mut buffer) else {
        return;
    };
    let again = Frame::parse(&buffer[..length], ChecksumState::Verify).expect("a valid frame");
    assert_eq!(again.link, parsed.link);
    match (again.content, parsed.content) {
        (Content::Ip(again), Content::Ip(before)) => same_packet(&again, &before),
        (again, before) => assert_eq!(again, before),
    }
    for short in [0, length / 2, length - 1] {
        assert!(write(&parsed.link, &parsed.content, &mut buffer[..short]).is_none());
    }
}

/// Returns the frame's length if it can be written.
fn write(link: &ethernet::Header, content: &Content<'_>, buffer: &mut [u8]) -> Option<usize> {
    let mut writer = Writer {
        link: Some(link),
        buffer,
    };
    match content {
        Content::Arp(packet) => writer.arp(packet).ok(),
        Content::Other(_) => None,
        Content::Ip(packet) => match (&packet.network, &packet.transport) {
            (network, Transport::Tcp(segment)) => {
                let payload = &[segment.payload];
                let checksum = Fill::Checksum;
                writer.tcp(network, &segment.header, payload, checksum).ok()
            }
            (Network::V4(header), Transport::Icmp4(message)) => writer.icmp4(header, message).ok(),
            (Network::V6(header), Transport::Icmp6(message)) => writer.icmp6(header, message).ok(),
            _ => None,
        },
    }
}

/// Compares the packets; `bytes` may differ, because IP options and extension headers are not
/// written.
fn same_packet(again: &Packet<'_>, before: &Packet<'_>) {
    assert_eq!(again.network, before.network);
    match (&again.transport, &before.transport) {
        (Transport::Tcp(again), Transport::Tcp(before)) => same_segment(again, before),
        (again, before) => assert_eq!(again, before),
    }
}

/// Writes the header of a segment, and reads it again.
pub(crate) fn tcp(bytes: &[u8]) {
    let Ok(before) = Segment::parse(bytes) else {
        return;
    };
    let mut buffer = [0; tcp::MAX_HEADER_BYTES];
    let length = before
        .header
        .emit(&mut buffer)
        .expect("room for any header");
    let again = Segment::parse(&buffer[..length]).expect("a valid header");
    let payload = before.payload;
    same_segment(&Segment { payload, ..again }, &before);
}

/// Compares the segments. A malformed list of options is not written as such, and blocks that do
/// not fit into the writer's layout are lost.
fn same_segment(again: &Segment<'_>, before: &Segment<'_>) {
    let mut expected = *before;
    expected.header = without_lost_blocks(&before.header);
    expected.header.options.malformed = false;
    assert_eq!(*again, expected);
}

/// The header without the blocks that do not fit beside the other options.
pub(crate) fn without_lost_blocks(header: &Header) -> Header {
    let mut others = *header;
    others.options.sack = SackBlocks::NONE;
    let room = (60 - others.len_bytes()).saturating_sub(4) / 8;
    let blocks = header.options.sack.as_slice().iter();
    others.options.sack = blocks.copied().take(room).collect();
    others
}
