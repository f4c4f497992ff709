//! Frames of an attacker, byte by byte: TCP segments with any source, and garbage.
//!
//! Source: RFC 791 §3.1, RFC 9293 §3.1, RFC 1071. An attacker has no stack: each frame is sent
//! once, and its answer is not read.

use std::net::{Ipv4Addr, SocketAddrV4};

use fastrand::Rng;

use crate::world::{GATEWAY_MAC, OTHER_PORT, PORT, SERVER};

/// MAC address of the attacker.
const ATTACKER_MAC: [u8; 6] = [2, 0, 0, 0, 9, 0x66];
/// Bytes of a frame with a segment without options and data.
pub(crate) const SEGMENT: usize = 54;
/// Flags of TCP (RFC 9293 §3.1).
pub(crate) const SYN: u8 = 2;
pub(crate) const RST: u8 = 4;
pub(crate) const ACK: u8 = 16;

/// A segment without data.
pub(crate) struct Segment {
    pub(crate) from: SocketAddrV4,
    pub(crate) to: SocketAddrV4,
    pub(crate) sequence: u32,
    pub(crate) acknowledgement: u32,
    pub(crate) flags: u8,
}

impl Segment {
    /// The frame, with correct checksums.
    pub(crate) fn frame(&self) -> [u8; SEGMENT] {
        let mut frame = [0; SEGMENT];
        frame[..14].copy_from_slice(&ethernet(0x0800));
        let (ip, tcp) = frame[14..].split_at_mut(20);
        // Version 4, five words; 40 bytes in all; do not fragment; 64 hops; TCP.
        ip[..10].copy_from_slice(&[0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6]);
        ip[12..16].copy_from_slice(&self.from.ip().octets());
        ip[16..20].copy_from_slice(&self.to.ip().octets());
        let sum = checksum(0, ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        tcp[..2].copy_from_slice(&self.from.port().to_be_bytes());
        tcp[2..4].copy_from_slice(&self.to.port().to_be_bytes());
        tcp[4..8].copy_from_slice(&self.sequence.to_be_bytes());
        tcp[8..12].copy_from_slice(&self.acknowledgement.to_be_bytes());
        // Five words of header; a window of 8 KiB.
        tcp[12..16].copy_from_slice(&[0x50, self.flags, 0x20, 0]);
        // The pseudo-header: both addresses, the protocol and the length of the segment.
        let pseudo = words(&ip[12..20]) + 6 + 20;
        let sum = checksum(pseudo, tcp);
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        frame
    }
}

fn ethernet(kind: u16) -> [u8; 14] {
    let mut header = [0; 14];
    header[..6].copy_from_slice(&GATEWAY_MAC);
    header[6..12].copy_from_slice(&ATTACKER_MAC);
    header[12..].copy_from_slice(&kind.to_be_bytes());
    header
}

/// The sum of 16-bit words; the last byte of an odd number is the upper one.
fn words(bytes: &[u8]) -> u32 {
    let low = |pair: &[u8]| pair.get(1).map_or(0, |byte| u32::from(*byte));
    let pairs = bytes.chunks(2);
    pairs
        .map(|pair| (u32::from(pair[0]) << 8) + low(pair))
        .sum()
}

fn checksum(begin: u32, bytes: &[u8]) -> u16 {
    let sum = begin + words(bytes);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    !u16::try_from(sum).unwrap()
}

/// The SYN of a host that does not exist, or the reset (`flags`) of the handshake that it has
/// begun.
/// Each number below 2^31 has its own host and port.
pub(crate) fn handshake(number: u32, flags: u8, port: u16) -> [u8; SEGMENT] {
    // 2^17 addresses of 198.18.0.0/15.
    let host = Ipv4Addr::from(0xc612_0000 | (number & 0x1_ffff));
    let their_port = 1024 + u16::try_from(number >> 17).unwrap();
    let sequence = number.wrapping_mul(0x9e37_79b9);
    let segment = Segment {
        from: SocketAddrV4::new(host, their_port),
        to: SocketAddrV4::new(SERVER, port),
        // A SYN is one unit of sequence space.
        sequence: sequence.wrapping_add(u32::from(flags == RST)),
        acknowledgement: 0,
        flags,
    };
    segment.frame()
}

/// A frame that no correct host sends.
pub(crate) fn garbage(rng: &mut Rng) -> Vec<u8> {
    match rng.u8(..6) {
        0 => {
            let kind = [0x0800, 0x86dd, 0x8100, 0x88cc][rng.usize(..4)];
            let mut frame = ethernet(kind).to_vec();
            let mut bytes = vec![0; rng.usize(..1_400)];
            rng.fill(&mut bytes);
            frame.extend_from_slice(&bytes);
            frame
        }
        // An IP header in front of random bytes, with any length, fragment and protocol.
        1 => {
            let mut frame = stray(rng).frame().to_vec();
            let mut bytes = vec![0; rng.usize(..1_400)];
            rng.fill(&mut bytes);
            frame.extend_from_slice(&bytes);
            frame[16..18].copy_from_slice(&rng.u16(..).to_be_bytes());
            frame[20..22].copy_from_slice(&rng.u16(..).to_be_bytes());
            frame[23] = [1, 2, 6, 17, rng.u8(..)][rng.usize(..5)];
            repair(&mut frame);
            frame
        }
        // A wrong checksum.
        2 => {
            let mut frame = stray(rng).frame().to_vec();
            frame[50] ^= 1 << rng.u8(..8);
            frame
        }
        // Headers that end behind the segment, or within themselves.
        3 => {
            let mut frame = stray(rng).frame().to_vec();
            frame[46] = rng.u8(..);
            frame
        }
        // The server's own address as source (CVE-1999-0016).
        4 => {
            let land = Segment {
                from: SocketAddrV4::new(SERVER, [PORT, OTHER_PORT][rng.usize(..2)]),
                ..stray(rng)
            };
            land.frame().to_vec()
        }
        // A frame that ends early.
        _ => {
            let frame = stray(rng).frame();
            frame[..rng.usize(14..SEGMENT)].to_vec()
        }
    }
}

/// A segment of no connection.
fn stray(rng: &mut Rng) -> Segment {
    Segment {
        from: SocketAddrV4::new(
            Ipv4Addr::from(0xc612_0000 | rng.u32(..1 << 17)),
            rng.u16(1..),
        ),
        to: SocketAddrV4::new(SERVER, [PORT, OTHER_PORT][rng.usize(..2)]),
        sequence: rng.u32(..),
        acknowledgement: rng.u32(..),
        flags: rng.u8(..),
    }
}

/// Gives the IP header of a frame its checksum, so that the rest is looked at.
fn repair(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let sum = checksum(0, &frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
}
