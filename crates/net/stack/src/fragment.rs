//! Reassembly of fragmented packets.
//!
//! Spec: RFC 791 §3.2, RFC 8200 §4.5, RFC 5722 (fragments that overlap end the packet; Linux does
//! the same for IPv4), RFC 3168 §5.3 (congestion marks). The wire has checked that each fragment is
//! possible.
//!
//! Adversary: any host, since fragments need no connection. Packets, bytes and packets of one
//! source have limits; beyond them, the oldest packet goes.

#[cfg(test)]
mod tests;

use alloc::vec::Vec;
use core::net::IpAddr;

use saiga_tcp::{Instant, Micros};
use saiga_wire::frame::Network;
use saiga_wire::ip::{Addresses, Ecn, Fragment, Protocol};
use saiga_wire::{ipv4, ipv6};

/// Most packets in reassembly, of all sources and of one.
const MOST_PACKETS: usize = 64;
const MOST_OF_A_SOURCE: usize = 8;
/// Most bytes of fragments, of all sources and of one: two of the largest packets.
const MOST_BYTES: usize = 1 << 20;
const MOST_BYTES_OF_A_SOURCE: usize = 128 << 10;
/// How long fragments may be missing: RFC 8200 §4.5 asks for 60 s, Linux waits 30 s for IPv4.
const TIMEOUT_V4: Micros = Micros::from_secs(30);
const TIMEOUT_V6: Micros = Micros::from_secs(60);

/// What a fragment has led to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Fragments are missing.
    Incomplete,
    /// The whole packet, with the header of an unfragmented one.
    Complete(Vec<u8>),
    /// The fragment overlaps another one: the packet is gone.
    Overlap,
}

/// A packet whose fragments were missing for too long, for an ICMP error.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expired {
    pub(crate) addresses: Addresses,
    /// The first fragment.
    pub(crate) bytes: Vec<u8>,
}

/// The packets in reassembly, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    packets: Vec<Partial>,
    bytes: usize,
    /// Packets that gave way to others.
    pub(crate) evicted: u64,
}

#[derive(Debug)]
struct Partial {
    key: Key,
    ends_at: Instant,
    /// Fragments in the order of their offsets.
    pieces: Vec<Piece>,
    /// Header of the first fragment.
    header: Option<Network>,
    /// Bytes of the payload, known from the last fragment.
    length: Option<usize>,
    is_congested: bool,
}

/// What the fragments of a packet share (RFC 791 §3.2, RFC 8200 §4.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    addresses: Addresses,
    id: u32,
    /// IPv4 only.
    protocol: Option<Protocol>,
}

#[derive(Debug)]
struct Piece {
    at: usize,
    bytes: Vec<u8>,
}

impl Piece {
    fn end(&self) -> usize {
        self.at + self.bytes.len()
    }
}

impl Reassembly {
    /// Takes a fragment with the IP header in front of it.
    pub(crate) fn add(
        &mut self,
        header: Network,
        fragment: Fragment,
        payload: &[u8],
        now: Instant,
    ) -> Outcome {
        let at = self.find_or_begin(key(&header, fragment), now);
        let before = self.packets[at].bytes();
        if !self.packets[at].add(header, fragment, payload) {
            self.remove(at);
            return Outcome::Overlap;
        }
        self.bytes += self.packets[at].bytes() - before;
        if let Some(whole) = self.packets[at].whole() {
            self.remove(at);
            return Outcome::Complete(whole);
        }
        self.keep_limits(header.addresses().source());
        Outcome::Incomplete
    }

    /// When the first packet expires.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.packets.iter().map(|packet| packet.ends_at).min()
    }

    /// Removes one packet that has expired.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Expired> {
        loop {
            let at = self
                .packets
                .iter()
                .position(|packet| packet.ends_at <= now)?;
            let packet = self.remove(at);
            // Without the first fragment, the source cannot tell which packet was lost (RFC 1122
            // §3.3.2, RFC 8200 §4.5).
            if let Some(bytes) = packet.first_fragment() {
                return Some(Expired {
                    addresses: packet.key.addresses,
                    bytes,
                });
            }
        }
    }

    fn find_or_begin(&mut self, key: Key, now: Instant) -> usize {
        if let Some(at) = self.packets.iter().position(|packet| packet.key == key) {
            return at;
        }
        let source = key.addresses.source();
        if self.of(source).count() >= MOST_OF_A_SOURCE {
            self.evict_of(source);
        } else if self.packets.len() >= MOST_PACKETS {
            self.evict(0);
        }
        let timeout = match source {
            IpAddr::V4(_) => TIMEOUT_V4,
            IpAddr::V6(_) => TIMEOUT_V6,
        };
        self.packets.push(Partial {
            key,
            ends_at: now + timeout,
            pieces: Vec::new(),
            header: None,
            length: None,
            is_congested: false,
        });
        self.packets.len() - 1
    }

    /// Drops the oldest packets of the source, then of all sources, while they have too many bytes.
    fn keep_limits(&mut self, source: IpAddr) {
        while self.of(source).map(Partial::bytes).sum::<usize>() > MOST_BYTES_OF_A_SOURCE {
            self.evict_of(source);
        }
        while self.bytes > MOST_BYTES {
            self.evict(0);
        }
    }

    fn of(&self, source: IpAddr) -> impl Iterator<Item = &Partial> {
        let is_of_source = move |one: &&Partial| one.key.addresses.source() == source;
        self.packets.iter().filter(is_of_source)
    }

    fn evict_of(&mut self, source: IpAddr) {
        let is_of_source = |one: &Partial| one.key.addresses.source() == source;
        let oldest = self.packets.iter().position(is_of_source);
        self.evict(oldest.unwrap_or(0));
    }

    fn evict(&mut self, at: usize) {
        self.remove(at);
        self.evicted += 1;
    }

    fn remove(&mut self, at: usize) -> Partial {
        let packet = self.packets.remove(at);
        self.bytes -= packet.bytes();
        packet
    }
}

impl Partial {
    /// Memory that the fragments take. A fragment of few bytes takes more than its bytes.
    fn bytes(&self) -> usize {
        let pieces = self.pieces.iter().map(|piece| piece.bytes.len());
        pieces.sum::<usize>() + self.pieces.len() * size_of::<Piece>()
    }

    /// Adds a fragment; false if it overlaps another one or contradicts the length. A fragment that
    /// has come before is ignored.
    fn add(&mut self, header: Network, fragment: Fragment, payload: &[u8]) -> bool {
        let piece = Piece {
            at: usize::from(fragment.offset),
            bytes: payload.to_vec(),
        };
        let after = self.pieces.partition_point(|other| other.at < piece.at);
        if let Some(same) = self.pieces.get(after)
            && same.at == piece.at
            && same.bytes == piece.bytes
        {
            return true;
        }
        let follows = after == 0 || self.pieces[after - 1].end() <= piece.at;
        let precedes = self
            .pieces
            .get(after)
            .is_none_or(|next| piece.end() <= next.at && piece.at < next.at);
        let last = self.pieces.last().map_or(0, Piece::end).max(piece.end());
        if !fragment.more {
            if self.length.is_some_and(|length| length != piece.end()) {
                return false;
            }
            self.length = Some(piece.end());
        }
        if !follows || !precedes || self.length.is_some_and(|length| last > length) {
            return false;
        }
        if piece.at == 0 {
            self.header = Some(header);
        }
        self.is_congested |= header.traffic_class().ecn() == Ecn::Congested;
        self.pieces.insert(after, piece);
        true
    }

    /// The packet, if no fragment is missing.
    fn whole(&self) -> Option<Vec<u8>> {
        let (header, length) = (self.header?, self.length?);
        let held: usize = self.pieces.iter().map(|piece| piece.bytes.len()).sum();
        if held != length {
            return None;
        }
        let marked = self.is_congested && header.traffic_class().ecn() != Ecn::NotCapable;
        let mut packet = emit(&unfragmented(header, marked), length)?;
        for piece in &self.pieces {
            packet.extend_from_slice(&piece.bytes);
        }
        Some(packet)
    }

    /// The first fragment as a packet.
    fn first_fragment(&self) -> Option<Vec<u8>> {
        let header = self.header?;
        let first = self.pieces.first()?;
        let mut packet = emit(&header, first.bytes.len())?;
        packet.extend_from_slice(&first.bytes);
        Some(packet)
    }
}

fn key(header: &Network, fragment: Fragment) -> Key {
    Key {
        addresses: header.addresses(),
        id: fragment.id,
        protocol: match header {
            Network::V4(header) => Some(header.protocol),
            Network::V6(_) => None,
        },
    }
}

/// The header of the whole packet.
fn unfragmented(header: Network, is_congested: bool) -> Network {
    let class = |class: saiga_wire::ip::TrafficClass| {
        if is_congested {
            class.with_ecn(Ecn::Congested)
        } else {
            class
        }
    };
    match header {
        Network::V4(header) => Network::V4(ipv4::Header {
            more_fragments: false,
            fragment_offset: 0,
            traffic_class: class(header.traffic_class),
            ..header
        }),
        Network::V6(header) => Network::V6(ipv6::Header {
            traffic_class: class(header.traffic_class),
            ..header
        }),
    }
}

/// A header in front of `payload_bytes`; `None` if these exceed a packet.
fn emit(header: &Network, payload_bytes: usize) -> Option<Vec<u8>> {
    let mut packet = alloc::vec![0; header.len_bytes()];
    header.emit(payload_bytes, &mut packet).ok()?;
    Some(packet)
}
