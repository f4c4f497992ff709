//! Corrects the checksums of damaged frames, so that the damage reaches the parsers of all layers.

use saiga_wire::checksum::Sum;
use saiga_wire::ip::{Addresses, Protocol};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Corrects the checksums of IPv4, TCP and ICMP, if the frame has these layers.
pub(crate) fn repair(frame: &mut [u8]) {
    let packet = packet(frame);
    match packet.first().map(|first| first >> 4) {
        Some(4) => repair_ipv4(packet),
        Some(6) => repair_ipv6(packet),
        _ => {}
    }
}

/// Sets the length field of the IP header to the length of the frame.
pub(crate) fn set_length(frame: &mut [u8]) {
    let packet = packet(frame);
    let (first, length) = (packet.first().map(|first| first >> 4), packet.len());
    let (at, length) = match first {
        Some(4) => (2, length),
        Some(6) => (4, length.saturating_sub(40)),
        _ => return,
    };
    if let (Some(field), Ok(length)) = (packet.get_mut(at..at + 2), u16::try_from(length)) {
        field.copy_from_slice(&length.to_be_bytes());
    }
}

/// The bytes behind the Ethernet header.
fn packet(frame: &mut [u8]) -> &mut [u8] {
    let types = [12, 16].map(|at| frame.get(at..at + 2).map(|two| [two[0], two[1]]));
    let [outer, inner] = types.map(|two| matches!(two, Some([0x81, 0x00] | [0x88, 0xa8])));
    let at = match (outer, inner) {
        (true, true) => 22,
        (true, false) => 18,
        (false, _) => 14,
    };
    frame.get_mut(at..).unwrap_or_default()
}

fn repair_ipv4(packet: &mut [u8]) {
    let header_bytes = usize::from(packet[0] & 15) * 4;
    if header_bytes < 20 || packet.len() < header_bytes {
        return;
    }
    let total = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
    set(&mut packet[..header_bytes], 10, Sum::ZERO);
    let address = |at: usize| {
        let octets: [u8; 4] = packet[at..at + 4].try_into().expect("as many bytes");
        Ipv4Addr::from(octets)
    };
    let addresses = Addresses::V4 {
        source: address(12),
        destination: address(16),
    };
    let protocol = Protocol(packet[9]);
    if let Some(payload) = packet.get_mut(header_bytes..total) {
        repair_transport(&addresses, protocol, payload);
    }
}

fn repair_ipv6(packet: &mut [u8]) {
    let Ok(parsed) = saiga_wire::ipv6::Packet::parse(packet) else {
        return;
    };
    let (end, length) = (parsed.bytes.len(), parsed.payload.len());
    let address = |at: usize| {
        let octets: [u8; 16] = packet[at..at + 16].try_into().expect("as many bytes");
        Ipv6Addr::from(octets)
    };
    let addresses = Addresses::V6 {
        source: address(8),
        destination: address(24),
    };
    let protocol = parsed.header.protocol;
    repair_transport(&addresses, protocol, &mut packet[end - length..end]);
}

fn repair_transport(addresses: &Addresses, protocol: Protocol, payload: &mut [u8]) {
    let length = u32::try_from(payload.len()).expect("a short payload");
    let pseudo_header = addresses.pseudo_header(protocol, length);
    match protocol {
        Protocol::TCP => set(payload, 16, pseudo_header),
        Protocol::ICMP => set(payload, 2, Sum::ZERO),
        Protocol::ICMP6 => set(payload, 2, pseudo_header),
        _ => {}
    }
}

/// Sets the checksum of `bytes`, whose field is at `at`.
fn set(bytes: &mut [u8], at: usize, pseudo_header: Sum) {
    if bytes.len() < at + 2 {
        return;
    }
    bytes[at..at + 2].fill(0);
    let checksum = pseudo_header.bytes(bytes).checksum();
    bytes[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
}
