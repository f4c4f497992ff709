//! Properties that hold for any bytes. The fuzz targets and the tests of this crate include them.

mod agreement;
mod repair;
pub(crate) mod rewrite;

use repair::{repair, set_length};
use saiga_wire::frame::{Content, Frame, Packet, Transport};
use saiga_wire::offload::ChecksumState;
use saiga_wire::{icmp6, ipv6, ndp, quote::Quoted};

/// The input is a frame as [`prepare`] reads it.
pub(crate) fn frame(input: &[u8]) {
    if let Some((frame, state)) = prepare(input) {
        check_frame(&frame, state);
    }
}

/// The first byte says how the rest, an Ethernet frame, is treated: the lower two bits are the
/// state of its checksum, the third bit sets the checksums right, and the fourth bit the length.
pub(crate) fn prepare(input: &[u8]) -> Option<(Vec<u8>, ChecksumState)> {
    let (&treatment, frame) = input.split_first()?;
    let state = match treatment & 3 {
        0 => ChecksumState::Trusted,
        1 => ChecksumState::Partial,
        _ => ChecksumState::Verify,
    };
    let mut frame = frame.to_vec();
    if treatment & 8 != 0 {
        set_length(&mut frame);
    }
    if treatment & 4 != 0 {
        repair(&mut frame);
    }
    Some((frame, state))
}

/// The input is a TCP segment, whose checksum counts as right.
pub(crate) fn tcp(input: &[u8]) {
    agreement::tcp(input);
    rewrite::tcp(input);
}

fn check_frame(frame: &[u8], state: ChecksumState) {
    agreement::frame(frame);
    let parsed = Frame::parse(frame, state);
    assert_eq!(
        parsed,
        Frame::parse(frame, state),
        "the same bytes, another result"
    );
    answer(frame);
    if let Ok(parsed) = parsed {
        check_bounds(frame, &parsed);
        rewrite::frame(&parsed);
        if let Content::Ip(packet) = parsed.content {
            check_alone(&packet, state);
            read_all(&packet.transport);
        }
    }
}

/// The answer to a bad packet points into the packet. The bytes are read as a packet of any kind.
fn answer(frame: &[u8]) {
    for packet in [frame, frame.get(14..).unwrap_or_default()] {
        if let Some(problem) = ipv6::parameter_problem(packet) {
            let pointer = usize::try_from(problem.pointer).expect("a small number");
            assert!(pointer < packet.len(), "{problem:?}");
        }
        let _ = Packet::parse_reassembled(packet);
    }
}

/// The slices of the result lie in the frame, and the payload ends with its packet.
fn check_bounds(frame: &[u8], parsed: &Frame<'_>) {
    let (packet, payload) = match &parsed.content {
        Content::Arp(_) => return,
        Content::Other(rest) => (&rest[..], &rest[..]),
        Content::Ip(packet) => match packet.transport {
            Transport::Tcp(segment) => (packet.bytes, segment.payload),
            Transport::Fragment(_, rest) | Transport::Other(rest) => (packet.bytes, rest),
            Transport::Icmp4(_) | Transport::Icmp6(_) => (packet.bytes, &packet.bytes[20..]),
        },
    };
    let at = parsed.link.len_bytes();
    assert_eq!(packet.as_ptr(), frame[at..].as_ptr());
    assert!(at + packet.len() <= frame.len());
    assert_eq!(payload.as_ptr_range().end, packet.as_ptr_range().end);
}

/// The result for a packet does not depend on the Ethernet header.
fn check_alone(packet: &Packet<'_>, state: ChecksumState) {
    assert_eq!(Packet::parse(packet.bytes, state), Ok(*packet));
}

/// Calls the functions that read a part of a packet on demand.
fn read_all(transport: &Transport<'_>) {
    match transport {
        Transport::Icmp4(message) => drop(message.quoted()),
        Transport::Icmp6(icmp6::Message::Ndp(ndp::Message::RouterAdvertisement(router))) => {
            assert!(
                router
                    .options
                    .prefixes()
                    .all(|prefix| prefix.length_bits <= 128)
            );
            let (_, _) = (router.options.mtu(), router.options.target_mac());
        }
        Transport::Icmp6(message) => drop(message.quoted()),
        Transport::Fragment(fragment, bytes) => {
            assert_eq!(fragment.offset % 8, 0);
            assert!(usize::from(fragment.offset) + bytes.len() <= 65_535);
        }
        Transport::Tcp(segment) => {
            let quoted = Quoted::of_ipv4(segment.payload).or(Quoted::of_ipv6(segment.payload));
            assert!(quoted.is_none_or(|quoted| quoted.seq.is_none() || quoted.ports.is_some()));
        }
        Transport::Other(_) => {}
    }
}
